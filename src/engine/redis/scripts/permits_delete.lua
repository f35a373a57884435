-- Removes permits with all that are out. Waiters hear nothing and go on waiting. KEYS[1] how many
-- are free, KEYS[2] who is out until when, KEYS[3] memory of this request; ARGV[1] how long to
-- remember in ms, ARGV[2] 1: a repetition, whose refusal is remembered, too. {1}: removed, now or
-- before; {0}: there are none, now or before; {-1}: a string, but no number.
local free = redis.call('GET', KEYS[1])
redis.call('ZCARD', KEYS[2]) -- is it a set?
local done = redis.call('GET', KEYS[3])
if done then
  return {done == 'no' and 0 or 1}
end
if free and not free:find('^%-?%d+$') then
  return {-1}
end
redis.call('DEL', KEYS[1], KEYS[2])
if not free then
  if ARGV[2] == '1' then
    redis.pcall('SET', KEYS[3], 'no', 'PX', ARGV[1])
  end
  return {0}
end
redis.pcall('SET', KEYS[3], '0', 'PX', ARGV[1])
return {1}
