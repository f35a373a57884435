-- Ends whoever's hold and hands the lock on, or wakes waiters. What is no lock is left alone.
-- KEYS[1] the lock; ARGV[1] channel, or nothing. With a queue: ARGV[2], see ARGV[3] of release.lua.
-- {1, left, holder}: this was there and is no more; {0, -2, ''}: nobody held it; {-1, fields,
-- what}: no lock of this kind, see what_hash.lua.
local channel, streak, late = ARGV[1], ARGV[2], 16
-- include held.lua
local left, holder = redis.call('PTTL', KEYS[1]), held[1]
local leaver, removed = holder, redis.call('DEL', KEYS[1])
local granted, free = false, '0'
if streak then
  local stood
  -- include names.lua
  -- include leave.lua
  -- include hand_over.lua
end
if channel and not granted then
  redis.pcall('PUBLISH', channel, free)
end
-- A client passes a plain lock on within itself with the 15 tokens after the instant of its
-- acquire, also while it has not heard of this: whoever gets the lock next is to have a higher one.
-- So this ends more than `late` us after that instant: whoever was handed the lock has a token that
-- is a time yet to come, which its own end may not precede. Where the time stands still within a
-- script (or may not be asked) so many questions take longer than that.
local began = redis.pcall('TIME')
for _ = 1, 200 do
  local now = redis.pcall('TIME')
  if not now.err and (now[1] - began[1]) * 1000000 + now[2] - began[2] > late then
    break
  end
end
return {1, left, holder}
