-- Takes permits if there are enough, once for this request. KEYS[1] the semaphore, KEYS[2] memory
-- of this request: how many it took, 0 once that was undone; ARGV[1] how many, ARGV[2] how long to
-- remember in ms. {1, free}: taken, now or before; {0, free}: not enough, or undone before it
-- arrived; {0}: no semaphore; {-1}: a string, but no number.
local free = redis.call('GET', KEYS[1])
local took = redis.call('GET', KEYS[2])
if free and not free:find('^%-?%d+$') then
  return {-1}
end
free = tonumber(free)
if took then
  return {took == '0' and 0 or 1, free}
end
if not free or free < tonumber(ARGV[1]) then
  return {0, free}
end
-- What may be refused for lack of memory or rights comes first, or is undone: no permit is lost.
-- Who takes by INCRBY may give back.
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
free = redis.pcall('INCRBY', KEYS[1], '-' .. ARGV[1])
if type(free) == 'table' then
  redis.pcall('DEL', KEYS[2])
  free.err = free.err .. ' (INCRBY)'
  return free
end
return {1, free}
