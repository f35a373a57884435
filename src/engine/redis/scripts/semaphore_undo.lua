-- Gives back what the acquire of this id took, if it did, and sees to it that a copy of it that arrives later takes nothing.
-- A semaphore that is gone stays gone.
-- KEYS[1] the semaphore, KEYS[2] memory of the acquire; ARGV[1] channel, ARGV[2] how long to remember in ms.
-- {1}: given back; {0}: nothing was taken, or nothing to give it back to is there.
local took = redis.pcall('GET', KEYS[2])
if type(took) == 'table' then
  return took
end
-- After a write, however empty, a script is not refused for lack of memory: a full server takes permits back.
local forgotten = redis.pcall('DEL', KEYS[2])
if type(forgotten) == 'table' then
  return forgotten
end
redis.pcall('SET', KEYS[2], '0', 'PX', ARGV[2])
if not took or took == '0' or redis.call('EXISTS', KEYS[1]) == 0 then
  return {0}
end
local free = redis.pcall('INCRBY', KEYS[1], took)
if type(free) == 'table' then
  redis.pcall('SET', KEYS[2], took, 'PX', ARGV[2])
  return free
end
if free > 0 then
  redis.pcall('PUBLISH', ARGV[1], free)
end
return {1}
