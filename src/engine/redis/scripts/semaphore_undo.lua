-- Gives back what the acquire of this id took, if it did, and sees to it that a copy of it that
-- arrives later takes nothing. A semaphore that is gone stays gone, and none gets more permits than
-- there can be. KEYS[1] the semaphore, KEYS[2] memory of the acquire; ARGV[1] channel, ARGV[2] how
-- long to remember in ms. {1}: given back; {0}: nothing was taken, or nothing to give it back to is
-- there; {-1}: a string, but no number.
local free = redis.call('GET', KEYS[1])
local took = redis.call('GET', KEYS[2])
if free and not free:find('^%-?%d+$') then
  return {-1}
end
-- After a write, however empty, a script is not refused for lack of memory: a full server takes
-- permits back.
redis.call('DEL', KEYS[2])
redis.pcall('SET', KEYS[2], '0', 'PX', ARGV[2])
if not free or not took or took == '0' then
  return {0}
end
local now = redis.pcall('INCRBY', KEYS[1], math.max(math.min(took, 2147483647 - free), 0))
if type(now) == 'table' then
  redis.pcall('SET', KEYS[2], took, 'PX', ARGV[2])
  now.err = now.err .. ' (INCRBY)'
  return now
end
if now > 0 then
  redis.pcall('PUBLISH', ARGV[1], now)
end
return {1}
