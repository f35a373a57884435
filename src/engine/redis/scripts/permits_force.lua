-- Takes back every permit that is out.
-- KEYS[1] how many are free, KEYS[2] who is out until when; ARGV[1] channel.
-- {1, how many were free, how many were out}; {0}: there are none; {-1}: a string, but no number.
-- include permits.lua
local all = redis.call('ZCARD', KEYS[2])
-- May all go back? A write that changes nothing first: a full server takes back.
if free and all > 0 then
  redis.call('ZREM', KEYS[2], '')
  redis.call('INCRBY', KEYS[1], '0')
end
redis.call('DEL', KEYS[2])
if not free then
  return {0}
end
if all > 0 then
  local left = redis.call('INCRBY', KEYS[1], all)
  if left > 0 then
    redis.pcall('PUBLISH', ARGV[1], left)
  end
end
return {1, free + dead, all - dead}
