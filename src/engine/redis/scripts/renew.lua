-- Starts the lease of this id's hold again.
-- KEYS[1] the lock; ARGV[1] hold id, ARGV[2] lease in ms.
-- {1}: renewed; {0, left, holder}: not held by this id; left -2 and no holder: by nobody.
local held = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if type(held) == 'table' then
  return held
end
if held == 1 then
  local renewed = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(renewed) == 'table' then
    return renewed
  end
  return {1}
end
local fields = redis.call('HLEN', KEYS[1])
return {0, redis.call('PTTL', KEYS[1]), fields == 1 and redis.call('HKEYS', KEYS[1])[1] or ''}
