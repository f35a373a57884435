-- Takes all permits that are free. Its TTL stays.
-- KEYS[1] the semaphore, KEYS[2] memory of this request; ARGV[1] how long to remember in ms,
-- ARGV[2] 1: a repetition, which is remembered even if there was nothing to take.
-- {1, how many}: taken, now or before, perhaps 0; {-1}: a string, but no number.
-- include number.lua
local free = number
if not free or tonumber(free) <= 0 then
  if ARGV[2] == '1' then
    redis.pcall('SET', KEYS[2], '0', 'PX', ARGV[1])
  end
  return {1, 0}
end
redis.call('SET', KEYS[2], free, 'PX', ARGV[1])
local now = redis.pcall('INCRBY', KEYS[1], '-' .. free)
if type(now) == 'table' then
  redis.pcall('DEL', KEYS[2])
  now.err = now.err .. ' (INCRBY)'
  return now
end
return {1, tonumber(free)}
