-- Says how many permits there are; changes nothing: those whose lease is over count as free before
-- anybody takes them back. KEYS[1] how many are free, KEYS[2] who is out until when. {1, free, out,
-- ms until the first expires or -1}; {0}: there are none; {-1}: a string, but no number.
-- include permits.lua
if not free then
  return {0}
end
local first = redis.call('ZRANGE', KEYS[2], dead, dead, 'WITHSCORES')
local ends = tonumber(first[2] or 922337203685477)
return {1, free + dead, redis.call('ZCARD', KEYS[2]) - dead, ends < 922337203685477 and ends - now or -1}
