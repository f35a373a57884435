-- The fair lock, in Redisson's format: a list of who waits, and until when each may take its turn (by the server's clock). Both change
-- together. Our own waiters stand in a third key too, until when they are believed to live; each time one asks it moves that on.
-- KEYS[1] the lock, KEYS[2] queue, KEYS[3] turns, KEYS[4] our waiters; ARGV[1] number of the verb: 1 acquire, 2 release, 5 force, ARGV[2]
-- hold id, ARGV[3] channel without a waiter's id, ARGV[4] lease in ms, ARGV[5] the token this hold has as far as the client knows,
-- else 0: with one it confirms and takes nothing, ARGV[6] 1: stand in the queue, ARGV[7] how long a waiter lives unheard in ms.
-- acquire: {1, now in us}: taken; {2, now in us}: was held by this id; {0, left, holder, place, waiters}: busy, place 0: none; {0, left, holder}:
-- gone. release: {1}: ended, or left the queue; {0, left, holder}: neither. force: {1, left, holder}: this was there; {0, -2, ''}: nothing.
-- {-1, fields, has a field "mode"}: a hash, but no lock of this kind.
local verb, id, WAIT = ARGV[1], ARGV[2], 300000
local fields = redis.pcall('HLEN', KEYS[1])
if type(fields) == 'table' then
  return fields
end
-- include clock.lua
-- include failed.lua
-- Takes ids out of the queue. Those behind lose what the leaver's turn added to theirs.
local function leave(gone)
  local before = 0
  for _, other in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    if gone[other] then
      before = before + 1
    elseif before > 0 and redis.call('ZSCORE', KEYS[3], other) then
      redis.pcall('ZINCRBY', KEYS[3], -before * WAIT, other)
    end
  end
  for other in pairs(gone) do
    redis.call('LREM', KEYS[2], 0, other)
    redis.call('ZREM', KEYS[3], other)
    redis.call('ZREM', KEYS[4], other)
  end
  return before > 0
end
-- Our dead wherever they stand; at the head those of others without a turn, or whose turn is over.
local function head_after_purge()
  local dead, any = {}, false
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now)) do
    dead[other], any = true, true
  end
  if any then
    leave(dead)
  end
  while true do
    local head = redis.call('LINDEX', KEYS[2], 0)
    local turn = head and redis.call('ZSCORE', KEYS[3], head)
    if not head or redis.call('ZSCORE', KEYS[4], head) or (turn and tonumber(turn) > now) then
      return head
    end
    redis.call('LREM', KEYS[2], 0, head)
    redis.call('ZREM', KEYS[3], head)
  end
end
local function wake(head)
  if head then
    redis.pcall('PUBLISH', ARGV[3] .. ':' .. head, '0')
  end
end
local function there()
  return redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1] or ''
end
if verb == '2' then
  local removed = redis.pcall('HDEL', KEYS[1], id)
  if failed(removed) then
    return removed
  end
  local left = leave({[id] = true})
  if redis.call('EXISTS', KEYS[1]) == 0 then
    wake(head_after_purge())
  end
  if removed == 1 or left then
    return {1}
  end
  return {0, there()}
end
if fields > 1 then
  return {-1, fields, redis.call('HEXISTS', KEYS[1], 'mode')}
end
if verb == '5' then
  local left, holder = there()
  local removed = redis.pcall('DEL', KEYS[1])
  if failed(removed) then
    return removed
  end
  wake(head_after_purge())
  return {removed, left, holder}
end
local held = redis.call('HEXISTS', KEYS[1], id) == 1
if not held and ARGV[5] ~= '0' then
  return {0, there()}
end
local head = not held and head_after_purge()
if held or (fields == 0 and (not head or head == id)) then
  local set = not held and redis.pcall('HSET', KEYS[1], id, '1')
  if failed(set) then
    return set
  end
  local renewed = redis.pcall('PEXPIRE', KEYS[1], ARGV[4])
  if failed(renewed) then
    if not held then
      redis.call('HDEL', KEYS[1], id)
    end
    return renewed
  end
  if head then
    leave({[id] = true})
  end
  return {held and 2 or 1, time[1] .. string.format('%06d', time[2])}
end
-- Busy. Whoever is next may have missed its message.
if fields == 0 then
  wake(head)
end
local left, holder = there()
local ids, place = redis.call('LRANGE', KEYS[2], 0, -1), 0
for i, other in ipairs(ids) do
  if other == id then
    place = i
    break
  end
end
if place > 0 then
  -- After a write, however empty, a script is not refused for lack of memory: on a full server, too, those who wait live on.
  redis.pcall('PEXPIRE', KEYS[4], '604800000')
  redis.pcall('ZADD', KEYS[4], now + ARGV[7], id)
  -- What others did to the turns must not end ours while we wait: enough for each of those before us to take theirs.
  if tonumber(redis.call('ZSCORE', KEYS[3], id) or 0) < now + (place - 1) * WAIT + WAIT / 5 then
    redis.pcall('ZADD', KEYS[3], now + place * WAIT, id)
  end
elseif ARGV[6] == '1' and #ids < 1024 then
  local last = ids[1] and redis.call('ZSCORE', KEYS[3], ids[#ids])
  local turn = last and math.max(tonumber(last), now) or now + math.max(left, 0)
  local added = redis.pcall('ZADD', KEYS[4], now + ARGV[7], id)
  if not failed(added) then
    redis.pcall('PEXPIRE', KEYS[4], '604800000')
    added = redis.pcall('ZADD', KEYS[3], string.format('%.0f', turn + WAIT), id)
  end
  if not failed(added) then
    added = redis.pcall('RPUSH', KEYS[2], id)
  end
  if failed(added) then
    redis.call('ZREM', KEYS[3], id)
    redis.call('ZREM', KEYS[4], id)
    return added
  end
  place = #ids + 1
end
return {0, left, holder, place, math.max(#ids, place)}
