-- Takes the lock if it is free, confirms it if this id holds it: either way the lease starts now.
-- KEYS[1] the lock; ARGV[1] hold id, ARGV[2] lease in ms, ARGV[3] the token this hold has as far as
-- the client knows, else 0: with one it is a re-entry, which confirms a hold and begins none. With
-- a queue: ARGV[4] the number of this question, see wait.lua. {1, now in us}: taken; {2, now in
-- us}: was held by this id; {0, left, holder}: busy, or with left -2 and no holder: gone; with a
-- queue {0, left, holder, place, waiters}: busy; {-1, fields, what}: a hash, but no lock of this
-- kind, see what_hash.lua.
local number, tokens = ARGV[4], '0'
local fields = redis.call('HLEN', KEYS[1])
-- include busy.lua
local now = redis.call('TIME')
if fields == 0 and ARGV[3] ~= '0' then
  return {0, -2, ''}
end
if fields == 0 then
  redis.call('HSET', KEYS[1], ARGV[1], '1')
end
local renewed = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if type(renewed) == 'table' then
  if fields == 0 then
    -- include unheld.lua
  end
  renewed.err = renewed.err .. ' (PEXPIRE)'
  return renewed
end
-- include taken.lua
return {fields == 0 and 1 or 2, now[1] .. string.format('%06d', now[2])}
