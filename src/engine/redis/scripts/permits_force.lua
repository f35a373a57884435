-- Takes back every permit that is out.
-- KEYS[1] how many are free, KEYS[2] who is out until when; ARGV[1] channel.
-- {1, how many were free, how many were out}; {0}: there are none; {-1}: a string, but no number.
-- include clock.lua
local free = redis.pcall('GET', KEYS[1])
local dead = redis.pcall('ZCOUNT', KEYS[2], '-inf', now)
if type(free) == 'table' or type(dead) == 'table' then
  return type(free) == 'table' and free or dead
end
if free and not free:find('^%-?%d+$') then
  return {-1}
end
local all = redis.call('ZCARD', KEYS[2])
local removed = redis.pcall('DEL', KEYS[2])
if type(removed) == 'table' then
  return removed
end
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
