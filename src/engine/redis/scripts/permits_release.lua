-- Gives permits back: with a memory of the request all or none, else as many as are out. Nothing in here is refused by a server that is
-- full: its first write is ZREM, and after a write a script is not refused for lack of memory.
-- KEYS[1] how many are free, KEYS[2] who is out until when, KEYS[3] memory of this request, if any; ARGV[1] ids, 16 bytes each, one
-- after the other, ARGV[2] channel, ARGV[3] how long to remember in ms, ARGV[4] 1: a repetition, whose refusal is remembered, too.
-- {1}: given back, now or before; {0}: none of them, or not all, are out, now or before; {-1}: a string, but no number.
-- include clock.lua
local free = redis.pcall('GET', KEYS[1])
local dead = redis.pcall('ZCOUNT', KEYS[2], '-inf', now)
local done = KEYS[3] and redis.pcall('GET', KEYS[3])
if type(free) == 'table' or type(dead) == 'table' or type(done) == 'table' then
  return type(free) == 'table' and free or type(dead) == 'table' and dead or done
end
if free and not free:find('^%-?%d+$') then
  return {-1}
end
if done then
  return {done == 'no' and 0 or 1}
end
if dead > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
end
local members, named = {}, {}
for at = 1, #ARGV[1], 16 do
  local id = ARGV[1]:sub(at, at + 15)
  if not redis.call('ZSCORE', KEYS[2], id) then
    -- Redisson up to 3.16 writes the id as 32 hex digits.
    id = id:gsub('.', function(byte) return string.format('%02x', byte:byte()) end)
  end
  if not named[id] and redis.call('ZSCORE', KEYS[2], id) then
    members[#members + 1] = id
    named[id] = true
  end
end
if KEYS[3] and #members < #ARGV[1] / 16 then
  members = {}
end
local back = dead
for _, id in ipairs(members) do
  local removed = redis.pcall('ZREM', KEYS[2], id)
  if type(removed) == 'table' then
    return removed
  end
  back = back + removed
end
if back > 0 and free then
  local left = redis.call('INCRBY', KEYS[1], back)
  if left > 0 then
    redis.pcall('PUBLISH', ARGV[2], left)
  end
end
if #members == 0 then
  if ARGV[4] == '1' then
    redis.pcall('SET', KEYS[3], 'no', 'PX', ARGV[3])
  end
  return {0}
end
if KEYS[3] then
  redis.pcall('SET', KEYS[3], '0', 'PX', ARGV[3])
end
return {1}
