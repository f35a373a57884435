-- Ends the hold of this id, if there is one, and hands the lock on, or wakes waiters. Nothing in
-- here is refused by a server that is full. The last field takes the key with it. A PUBLISH that
-- the user may not do costs the waiters their wake-up, not the holder its release. KEYS[1] the
-- lock; ARGV[1] hold id, ARGV[2] channel, or nothing: a spin lock's waiters poll. With a queue:
-- ARGV[3] how many in a row are handed on with this one, see hand_over.lua; '0': an earlier
-- question of this id may be executed late, and may have put it there. Who only waits stands there
-- no more. {1}: released, or out of the queue; {0, left, holder}: neither; left -2 and no holder:
-- nobody holds it; {-1, fields, what}: no lock, see what_hash.lua.
local leaver, channel, streak, late = ARGV[1], ARGV[2], ARGV[3], 0
local removed = redis.call('HDEL', KEYS[1], ARGV[1])
local stood, granted, free = false, false, '0'
if streak then
  -- include names.lua
  if removed == 0 or streak == '0' then
    -- include leave.lua
  end
  if removed == 1 or stood then
    -- include hand_over.lua
  end
end
if removed == 1 and channel and not granted then
  redis.pcall('PUBLISH', channel, free)
end
if removed == 1 or stood then
  return {1}
end
-- include not_held.lua
