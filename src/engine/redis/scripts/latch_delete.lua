-- Removes a latch. That opens it: its waiters are told 0, so that Java's, whom a deletion by Java
-- leaves waiting, go on as well. KEYS[1] the latch, KEYS[2] memory of this request; ARGV[1]
-- channel, ARGV[2] how long to remember in ms, ARGV[3] 1: a repetition, whose refusal is
-- remembered, too. {1, 0}: removed, now or before; {0, 0}: it was open, now or before; {-1}: a
-- string, but no number.
-- include number.lua
local count = number
redis.call('DEL', KEYS[1])
if not count or tonumber(count) <= 0 then
  if ARGV[3] == '1' then
    redis.pcall('SET', KEYS[2], 'no0', 'PX', ARGV[2])
  end
  return {0, 0}
end
redis.pcall('SET', KEYS[2], '0', 'PX', ARGV[2])
redis.pcall('PUBLISH', ARGV[1], '0')
return {1, 0}
