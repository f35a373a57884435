-- Says how many permits are free, or the count of a latch; changes nothing.
-- KEYS[1] the semaphore or latch.
-- {1, number}; {0}: it does not exist; {-1}: a string, but no number.
local number = redis.call('GET', KEYS[1])
if not number then
  return {0}
end
return number:find('^%-?%d+$') and {1, tonumber(number)} or {-1}
