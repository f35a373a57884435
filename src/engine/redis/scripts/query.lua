-- Says what there is; changes nothing.
-- KEYS[1] the lock.
-- {1, left, holder}: held; {0, -2, ''}: free; {-1, fields, has a field "mode"}: no lock of this kind.
local fields = redis.pcall('HLEN', KEYS[1])
if type(fields) == 'table' then
  return fields
end
if fields == 0 then
  return {0, -2, ''}
end
if fields > 1 then
  return {-1, fields, redis.call('HEXISTS', KEYS[1], 'mode')}
end
return {1, redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1]}
