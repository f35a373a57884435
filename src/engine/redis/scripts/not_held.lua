-- Part of scripts about a hold that is not there: answers whose the lock is, {0, left, holder}, or
-- that it is none, see what_hash.lua.
local fields = redis.call('HLEN', KEYS[1])
if fields == 0 then
  return {0, -2, ''}
end
-- include lock_field.lua
-- include what_hash.lua
local held = fields == 1 and redis.call('HGETALL', KEYS[1])
if not held or not lock_field(held[1], held[2]) then
  return what_hash(fields)
end
return {0, redis.call('PTTL', KEYS[1]), held[1]}
