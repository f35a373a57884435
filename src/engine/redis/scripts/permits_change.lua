-- Makes permits, or changes how many there are. Who is out stays so; what is free may fall below 0.
-- KEYS[1] how many are free, KEYS[2] who is out until when, KEYS[3] memory of this request; ARGV[1]
-- 7, SET: so many if there are none, 8, RESIZE: so many, 9, ADD: so many more, below 0: fewer;
-- ARGV[2] how many, ARGV[3] 1: only if they exist, ARGV[4] channel, ARGV[5] how long to remember in
-- ms, ARGV[6] 1: a repetition, whose refusal is remembered, too. {1, free}: done, now or before;
-- {0, free}: they exist, {0}: they do not, now or before; {-1}: a string, but no number; {-2}: out
-- of range.
-- include clock.lua
local free = redis.call('GET', KEYS[1])
local dead = redis.call('ZCOUNT', KEYS[2], '-inf', now)
local done = redis.call('GET', KEYS[3])
-- include done.lua
if free and not free:find('^%-?%d+$') then
  return {-1}
end
free = tonumber(free)
local before = free and free + dead
if (free and ARGV[1] == '7') or (not free and ARGV[3] == '1') then
  if ARGV[6] == '1' then
    redis.pcall('SET', KEYS[3], 'no' .. (before or ''), 'PX', ARGV[5])
  end
  return {0, before}
end
local out = redis.call('ZCARD', KEYS[2]) - dead
local after = ARGV[1] == '9' and (before or 0) + ARGV[2] or ARGV[2] - out
if after + out > 2147483647 or after + out < 0 then
  return {-2}
end
redis.call('SET', KEYS[3], after, 'PX', ARGV[5])
local changed = dead > 0 and redis.pcall('ZREMRANGEBYSCORE', KEYS[2], '1', '0') or 0 -- is it allowed?
local command = ' (ZREMRANGEBYSCORE)'
if type(changed) ~= 'table' then
  changed, command = redis.pcall('INCRBY', KEYS[1], after - (free or 0)), ' (INCRBY)'
end
if type(changed) == 'table' then
  redis.pcall('DEL', KEYS[3])
  changed.err = changed.err .. command
  return changed
end
if dead > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
end
if after > 0 and after > (free or 0) then
  redis.pcall('PUBLISH', ARGV[4], after)
end
return {1, after}
