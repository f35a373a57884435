-- Takes the lock if it is free, confirms it if this id holds it: either way the lease starts now.
-- KEYS[1] the lock; ARGV[1] hold id, ARGV[2] lease in ms, ARGV[3] the token this hold has as far as the client knows, else 0: with
-- one it is a re-entry, which confirms a hold and begins none. With a queue: ARGV[4] the number of this question, see wait.lua.
-- {1, now in us}: taken; {2, now in us}: was held by this id; {0, left, holder}: busy, or with left -2 and no holder: gone; with a
-- queue {0, left, holder, place, waiters}: busy; {-1, fields, has a field "mode"}: a hash, but no lock of this kind.
local number, tokens = ARGV[4], '0'
local fields = redis.pcall('HLEN', KEYS[1])
if type(fields) == 'table' then
  return fields
end
-- include busy.lua
-- What may be refused for lack of rights comes before the first write, or undoes it: no hold without a lease.
local now = redis.call('TIME')
if fields == 0 and ARGV[3] ~= '0' then
  return {0, -2, ''}
end
if fields == 0 then
  local set = redis.pcall('HSET', KEYS[1], ARGV[1], '1')
  if type(set) == 'table' then
    return set
  end
end
local renewed = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if type(renewed) == 'table' then
  if fields == 0 then
    redis.call('HDEL', KEYS[1], ARGV[1])
  end
  return renewed
end
-- include taken.lua
return {fields == 0 and 1 or 2, now[1] .. string.format('%06d', now[2])}
