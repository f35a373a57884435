-- Ends whoever's hold and hands the lock on, or wakes waiters. What is no lock is left alone.
-- KEYS[1] the lock; ARGV[1] channel, or nothing. With a queue: ARGV[2] to ARGV[5] as ARGV[3] to ARGV[6] of release.lua.
-- {1, left, holder}: this was there and is no more; {0, -2, ''}: nobody held it; {-1, fields, has a field "mode"}: no lock of this kind.
local queue, alive, counter, channel, listening = ARGV[3], ARGV[4], ARGV[5], ARGV[1], ARGV[2]
local fields = redis.pcall('HLEN', KEYS[1])
if type(fields) == 'table' then
  return fields
end
if fields == 0 then
  return {0, -2, ''}
end
if fields > 1 then
  return {-1, fields, redis.call('HEXISTS', KEYS[1], 'mode')}
end
local left = redis.call('PTTL', KEYS[1])
local holder = redis.call('HKEYS', KEYS[1])[1]
local removed = redis.pcall('DEL', KEYS[1])
if type(removed) == 'table' then
  return removed
end
local granted, free = false, '0'
if queue and type(redis.pcall('LINDEX', queue, 0)) == 'string' then
  redis.pcall('ZREM', alive, holder) -- a late copy of its question may have put it there
  -- include hand_over.lua
end
if channel and not granted then
  redis.pcall('PUBLISH', channel, free)
end
return {1, left, holder}
