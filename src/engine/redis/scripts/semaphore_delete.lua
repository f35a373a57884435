-- Removes a semaphore. Its waiters hear nothing and go on waiting. KEYS[1] the semaphore, KEYS[2]
-- memory of this request; ARGV[1] how long to remember in ms, ARGV[2] 1: a repetition, whose
-- refusal is remembered, too. {1}: removed, now or before; {0}: it does not exist, now or before;
-- {-1}: a string, but no number.
-- include number.lua
local free = number
if not free then
  if ARGV[2] == '1' then
    redis.pcall('SET', KEYS[2], 'no', 'PX', ARGV[1])
  end
  return {0}
end
redis.call('DEL', KEYS[1])
redis.pcall('SET', KEYS[2], '', 'PX', ARGV[1])
return {1}
