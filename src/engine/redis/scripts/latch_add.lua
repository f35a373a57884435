-- Counts a latch down, at most to 0, at which it is gone and its waiters go on. KEYS[1] the latch,
-- KEYS[2] memory of this request; ARGV[1] how many, below 0, ARGV[2] channel, ARGV[3] how long to
-- remember in ms, ARGV[4] 1: a repetition, whose refusal is remembered, too. {1, count}: done, now
-- or before; {0, 0}: it was open, now or before; {-1}: a string, but no number.
-- include number.lua
local count = number
if not count or tonumber(count) <= 0 then
  if ARGV[4] == '1' then
    redis.pcall('SET', KEYS[2], 'no0', 'PX', ARGV[3])
  end
  return {0, 0}
end
-- After a write, however empty, a script is not refused for lack of memory: a full server still
-- counts down.
redis.call('DEL', KEYS[2])
local left = math.max(count + ARGV[1], 0)
redis.call('SET', KEYS[2], left, 'PX', ARGV[3])
local counted = left > 0 and redis.pcall('INCRBY', KEYS[1], ARGV[1]) or redis.pcall('DEL', KEYS[1])
if type(counted) == 'table' then
  redis.pcall('DEL', KEYS[2])
  counted.err = counted.err .. ' (INCRBY)'
  return counted
end
if left == 0 then
  redis.pcall('PUBLISH', ARGV[2], '0')
end
return {1, left}
