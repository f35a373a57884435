-- Part of scripts about a lock: `held`, the field of the hold and its value. Of what is none they
-- answer {0, -2, ''}, nobody holds it, or what_hash.lua.
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
