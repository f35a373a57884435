-- Part of scripts about permits: `time`, `now`, see clock.lua; `free`, how many are free, text, or
-- false; `dead`, how many leases are over. Text that is no number is somebody else's.
-- include clock.lua
local free = redis.call('GET', KEYS[1])
local dead = redis.call('ZCOUNT', KEYS[2], '-inf', now)
if free and not free:find('^%-?%d+$') then
  return {-1}
end
