-- Starts the lease of this id's hold again. KEYS[1] the lock; ARGV[1] hold id, ARGV[2] lease in ms.
-- {1}: renewed; {0, left, holder}: not held by this id; left -2 and no holder: by nobody; {-1,
-- fields, what}: no lock, see what_hash.lua.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1}
end
-- include not_held.lua
