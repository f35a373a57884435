-- Gives a latch a count if it is open, that is, if it does not exist or, as some Java client may
-- have left it, is not above 0. KEYS[1] the latch, KEYS[2] memory of this request; ARGV[1] count,
-- ARGV[2] channel, ARGV[3] how long to remember in ms, ARGV[4] 1: a repetition, whose refusal is
-- remembered, too. {1, count}: done, now or before; {0, count}: it has one, now or before; {-1}: a
-- string, but no number.
-- include number.lua
local count = number
if count and tonumber(count) > 0 then
  if ARGV[4] == '1' then
    redis.pcall('SET', KEYS[2], 'no' .. count, 'PX', ARGV[3])
  end
  return {0, tonumber(count)}
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
local set = redis.pcall('SET', KEYS[1], ARGV[1])
if set.err then
  redis.pcall('DEL', KEYS[2])
  return set
end
redis.pcall('PUBLISH', ARGV[2], '1')
return {1, tonumber(ARGV[1])}
