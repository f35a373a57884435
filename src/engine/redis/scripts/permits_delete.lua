-- Removes permits with all that are out. Waiters hear nothing and go on waiting.
-- KEYS[1] how many are free, KEYS[2] who is out until when, KEYS[3] memory of this request; ARGV[1] how long to remember in
-- ms, ARGV[2] 1: a repetition, whose refusal is remembered, too.
-- {1}: removed, now or before; {0}: there are none, now or before; {-1}: a string, but no number.
local free = redis.pcall('GET', KEYS[1])
local out = redis.pcall('ZCARD', KEYS[2])
local done = redis.pcall('GET', KEYS[3])
if type(free) == 'table' or type(out) == 'table' or type(done) == 'table' then
  return type(free) == 'table' and free or type(out) == 'table' and out or done
end
if done then
  return {done == 'no' and 0 or 1}
end
if free and not free:find('^%-?%d+$') then
  return {-1}
end
local removed = redis.pcall('DEL', KEYS[1], KEYS[2])
if type(removed) == 'table' then
  return removed
end
if not free then
  if ARGV[2] == '1' then
    redis.pcall('SET', KEYS[3], 'no', 'PX', ARGV[1])
  end
  return {0}
end
redis.pcall('SET', KEYS[3], '0', 'PX', ARGV[1])
return {1}
