-- Part of scripts about permits: those whose lease is over come back, to a number that still
-- exists: `free`, `dead`; `left`: how many are free now. All or nothing of it is refused: that both
-- commands are allowed is seen by what changes nothing. ZREM first: after a write a script is not
-- refused for lack of memory.
local left = tonumber(free or 0)
if dead > 0 then
  redis.call('ZREM', KEYS[2], '')
  if free then
    redis.call('INCRBY', KEYS[1], '0')
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  left = free and redis.call('INCRBY', KEYS[1], dead) or 0
end
