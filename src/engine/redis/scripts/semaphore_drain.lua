-- Takes all permits that are free. Its TTL stays.
-- KEYS[1] the semaphore, KEYS[2] memory of this request; ARGV[1] how long to remember in ms,
-- ARGV[2] 1: a repetition, which is remembered even if there was nothing to take.
-- {1, how many}: taken, now or before, perhaps 0; {-1}: a string, but no number.
local free = redis.pcall('GET', KEYS[1])
local done = redis.pcall('GET', KEYS[2])
if type(free) == 'table' or type(done) == 'table' then
  return type(free) == 'table' and free or done
end
if done then
  return {1, tonumber(done)}
end
if free and not free:find('^%-?%d+$') then
  return {-1}
end
if not free or tonumber(free) <= 0 then
  if ARGV[2] == '1' then
    redis.pcall('SET', KEYS[2], '0', 'PX', ARGV[1])
  end
  return {1, 0}
end
local kept = redis.pcall('SET', KEYS[2], free, 'PX', ARGV[1])
if kept.err then
  return kept
end
local now = redis.pcall('DECRBY', KEYS[1], free)
if type(now) == 'table' then
  redis.call('DEL', KEYS[2])
  return now
end
return {1, tonumber(free)}
