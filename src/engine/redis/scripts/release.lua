-- Ends the hold of this id, if there is one, and hands the lock on, or wakes waiters. Nothing in here is refused by a server that is
-- full. The last field takes the key with it. A PUBLISH that the user may not do costs the waiters their wake-up, not the holder its release.
-- KEYS[1] the lock; ARGV[1] hold id, ARGV[2] channel, or nothing: a spin lock's waiters poll. With a queue: ARGV[3] channel of our clients, ARGV[4],
-- ARGV[5] the queue, ARGV[6] counter of tokens (see wait.lua, hand_over.lua): who only waits stands there no more. Keys as arguments, since who
-- has no right to them is to have a lock without a queue.
-- {1}: released, or out of the queue; {0, left, holder}: neither; left -2 and no holder: nobody holds it.
local queue, alive, counter, channel, listening = ARGV[4], ARGV[5], ARGV[6], ARGV[2], ARGV[3]
local removed = redis.pcall('HDEL', KEYS[1], ARGV[1])
if type(removed) == 'table' then
  return removed
end
local stood, granted, free = false, false, '0'
if queue and type(redis.pcall('LINDEX', queue, 0)) == 'string' then
  -- include leave.lua
  if (removed == 1 or stood) and redis.pcall('EXISTS', KEYS[1]) == 0 then
    -- include hand_over.lua
  end
end
if removed == 1 and channel and not granted then
  redis.pcall('PUBLISH', channel, free)
end
if removed == 1 or stood then
  return {1}
end
local fields = redis.call('HLEN', KEYS[1])
return {0, redis.call('PTTL', KEYS[1]), fields == 1 and redis.call('HKEYS', KEYS[1])[1] or ''}
