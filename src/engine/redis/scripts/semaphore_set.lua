-- Makes a semaphore with so many permits if there is none. KEYS[1] the semaphore, KEYS[2] memory of
-- this request; ARGV[1] how many, ARGV[2] it vanishes after so many ms, 0 never, ARGV[3] channel,
-- ARGV[4] how long to remember in ms, ARGV[5] 1: a repetition, whose refusal is remembered, too.
-- {1, free}: done, now or before; {0, free}: it exists, now or before; {-1}: a string, but no
-- number.
-- include number.lua
local free = number
if free then
  if ARGV[5] == '1' then
    redis.pcall('SET', KEYS[2], 'no' .. free, 'PX', ARGV[4])
  end
  return {0, tonumber(free)}
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[4])
local set
if ARGV[2] == '0' then
  set = redis.pcall('SET', KEYS[1], ARGV[1])
else
  set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
if set.err then
  redis.pcall('DEL', KEYS[2])
  return set
end
redis.pcall('PUBLISH', ARGV[3], ARGV[1])
return {1, tonumber(ARGV[1])}
