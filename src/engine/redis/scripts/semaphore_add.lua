-- More permits, or fewer. Its TTL stays. KEYS[1] the semaphore, KEYS[2] memory of this request;
-- ARGV[1] how many, below 0: fewer, ARGV[2] 1: only if it exists, ARGV[3] channel, ARGV[4] how long
-- to remember in ms, ARGV[5] 1: a repetition, whose refusal is remembered, too. {1, free}: done,
-- now or before; {0}: it does not exist, now or before; {-1}: a string, but no number; {-2}: out of
-- range.
-- include number.lua
local free = number
if not free and ARGV[2] == '1' then
  if ARGV[5] == '1' then
    redis.pcall('SET', KEYS[2], 'no', 'PX', ARGV[4])
  end
  return {0}
end
local sum = (free or 0) + ARGV[1]
if sum > 2147483647 or sum < -2147483647 then
  return {-2}
end
if tonumber(ARGV[1]) > 0 then
  redis.pcall('DEL', KEYS[2]) -- after a write, however empty, a full server does not refuse what is given back
end
redis.call('SET', KEYS[2], sum, 'PX', ARGV[4])
local now = redis.pcall('INCRBY', KEYS[1], ARGV[1])
if type(now) == 'table' then
  redis.pcall('DEL', KEYS[2])
  now.err = now.err .. ' (INCRBY)'
  return now
end
if now >= 0 then -- a Java listener throws at a negative number
  redis.pcall('PUBLISH', ARGV[3], now)
end
return {1, now}
