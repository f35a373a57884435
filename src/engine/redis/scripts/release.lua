-- Ends the hold of this id, if there is one, and wakes waiters. Nothing in here is refused by a server that is full. The last
-- field takes the key with it. A PUBLISH that the user may not do costs the waiters their wake-up, not the holder its release.
-- KEYS[1] the lock; ARGV[1] hold id, ARGV[2] channel, or nothing: a spin lock's waiters poll.
-- {1}: released; {0, left, holder}: not held by this id; left -2 and no holder: by nobody.
local removed = redis.pcall('HDEL', KEYS[1], ARGV[1])
if type(removed) == 'table' then
  return removed
end
if removed == 1 then
  if ARGV[2] then
    redis.pcall('PUBLISH', ARGV[2], '0')
  end
  return {1}
end
local fields = redis.call('HLEN', KEYS[1])
return {0, redis.call('PTTL', KEYS[1]), fields == 1 and redis.call('HKEYS', KEYS[1])[1] or ''}
