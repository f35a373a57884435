-- As acquire.lua, with the token counter at the server. A hold has so many tokens; a new one's
-- first is max(counter + 1, now in us): a lost counter cannot bring an old token back. The counter
-- is their last. It is counted by INCRBY and handed on as text: Lua's numbers end at 2^53. KEYS[1]
-- the lock, KEYS[2] its token counter; ARGV[1] hold id, ARGV[2] lease in ms, ARGV[3] the last token
-- this hold has as far as the client knows, else 0, ARGV[4] how many tokens a hold has. With a
-- queue: ARGV[5] as ARGV[4] of acquire.lua; without: ARGV[5] channel on which a new hold is told.
-- {1, last token}: taken; {2, last token}: was held by this id; {0, left, holder}: busy, or with
-- left -2 and no holder: gone; with a queue {0, left, holder, place, waiters}: busy; {-1, fields,
-- what}: no lock of this kind, see what_hash.lua.
local number, tokens = string.match(ARGV[5], '^-?%d') and ARGV[5], ARGV[4]
local fields = redis.call('HLEN', KEYS[1])
if fields == 0 and ARGV[3] ~= '0' then
  return {0, -2, ''}
end
-- include busy.lua
local status = fields == 0 and 1 or 2
local token = status == 2 and redis.call('GET', KEYS[2])
if status == 2 and not token and ARGV[3] ~= '0' then
  -- The counter was lost under a live hold: put back what the client knows, if the server has room
  -- for it.
  redis.pcall('SET', KEYS[2], ARGV[3])
  token = ARGV[3]
end
-- A token that is counted and not given to anybody does no harm.
if not token then
  local last = redis.call('INCRBY', KEYS[2], ARGV[4])
  local now = redis.call('TIME')
  local least = now[1] * 1000000 + now[2] + ARGV[4] - 1
  if last < least then
    redis.call('SET', KEYS[2], string.format('%.0f', least))
  end
  token = redis.call('GET', KEYS[2])
end
if status == 1 then
  redis.call('HSET', KEYS[1], ARGV[1], '1')
end
local renewed = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if type(renewed) == 'table' then
  if status == 1 then
    -- include unheld.lua
  end
  renewed.err = renewed.err .. ' (PEXPIRE)'
  return renewed
end
-- include taken.lua
if status == 1 and not number then
  redis.pcall('PUBLISH', ARGV[5], '2')
end
return {status, token}
