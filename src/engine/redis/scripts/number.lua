-- Part of scripts that change a number once: `number`, the text that stands there, or false. A
-- request that was executed before is answered as it was then. What is no number is somebody
-- else's.
local number = redis.call('GET', KEYS[1])
local done = redis.call('GET', KEYS[2])
-- include done.lua
if number and not number:find('^%-?%d+$') then
  return {-1}
end
