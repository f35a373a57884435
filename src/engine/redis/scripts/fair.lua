-- The fair lock, in Redisson's format: a list of who waits, and until when each may take its turn
-- (by the server's clock). Both change together. Our own waiters stand in a third key too, until
-- when they are believed to live; each time one asks it moves that on. KEYS[1] the lock, KEYS[2]
-- queue, KEYS[3] turns, KEYS[4] our waiters; ARGV[1] number of the verb: 1 acquire, 2 release, 5
-- force, ARGV[2] hold id, ARGV[3] channel without a waiter's id, ARGV[4] lease in ms, ARGV[5] the
-- token this hold has as far as the client knows, else 0: with one it confirms and takes nothing,
-- ARGV[6] 1: stand in the queue, ARGV[7] how long a waiter lives unheard in ms. acquire: {1, now in
-- us}: taken; {2, now in us}: was held by this id; {0, left, holder, place, waiters}: busy, place
-- 0: none; {0, left, holder}: gone. release: {1}: ended, or left the queue; {0, left, holder}:
-- neither. force: {1, left, holder}: this was there; {0, -2, ''}: nothing; with ARGV[4], in place
-- of the lease, a waiter leaves the queue: {1, -1, waiter}, {0, -2, ''}. {-1, fields, what}: a
-- hash, but no lock of this kind, see what_hash.lua. What is refused is refused before the lock
-- changes: who leaves the queue does so before it releases or takes the lock.
local verb, id, WAIT, STAYS = ARGV[1], ARGV[2], 300000, '86400000'
local fields = redis.call('HLEN', KEYS[1])
-- include clock.lua
-- include failed.lua
-- include lock_field.lua
-- include what_hash.lua
local left, holder = -2, ''
if fields == 1 then
  local held = redis.call('HGETALL', KEYS[1])
  if not lock_field(held[1], held[2]) then
    return what_hash(fields)
  end
  left, holder = redis.call('PTTL', KEYS[1]), held[1]
elseif fields > 1 then
  return what_hash(fields)
end
-- From queue and turns, in an order in which a refusal leaves them in step: the first of the three
-- shows whether ZREM is allowed.
local function remove(other)
  redis.call('ZREM', KEYS[4], other)
  redis.call('LREM', KEYS[2], 0, other)
  redis.call('ZREM', KEYS[3], other)
end
-- Takes ids out of the queue. Those behind lose what the leaver's turn added to theirs. The queue
-- of others, when the last of ours is gone, stays as long as it stands, as they expect.
local function leave(gone)
  local before, stay = 0, false
  for _, other in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    stay = stay or not gone[other]
    if gone[other] then
      before = before + 1
    elseif before > 0 and redis.call('ZSCORE', KEYS[3], other) then
      redis.pcall('ZINCRBY', KEYS[3], -before * WAIT, other)
    end
  end
  for other in pairs(gone) do
    remove(other)
  end
  if stay and before > 0 and redis.pcall('ZCARD', KEYS[4]) == 0 then
    redis.pcall('PERSIST', KEYS[2])
    redis.pcall('PERSIST', KEYS[3])
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
    remove(head)
  end
end
local function wake(head)
  if head then
    redis.pcall('PUBLISH', ARGV[3] .. ':' .. head, '0')
  end
end
if verb == '2' then
  local stood = leave({[id] = true})
  local head = (holder == id or fields == 0) and head_after_purge()
  if holder == id then
    redis.call('HDEL', KEYS[1], id)
  end
  wake(head)
  if holder == id or stood then
    return {1}
  end
  return {0, left, holder}
end
if verb == '5' and ARGV[4] ~= '' then
  local stood = leave({[ARGV[4]] = true})
  local head = head_after_purge()
  if stood and fields == 0 then
    wake(head)
  end
  return {stood and 1 or 0, stood and -1 or -2, stood and ARGV[4] or ''}
end
if verb == '5' then
  local head = head_after_purge()
  local removed = redis.call('DEL', KEYS[1])
  wake(head)
  return {removed, left, holder}
end
local held = holder == id
if not held and ARGV[5] ~= '0' then
  return {0, left, holder}
end
local head = not held and head_after_purge()
if held or (fields == 0 and (not head or head == id)) then
  if head then
    leave({[id] = true})
  end
  if not held then
    redis.call('HSET', KEYS[1], id, '1')
  end
  local renewed = redis.pcall('PEXPIRE', KEYS[1], ARGV[4])
  if failed(renewed, 'PEXPIRE') then
    if not held and failed(redis.pcall('HDEL', KEYS[1], id), 'HDEL') then
      redis.pcall('DEL', KEYS[1])
    end
    return renewed
  end
  return {held and 2 or 1, time[1] .. string.format('%06d', time[2])}
end
-- Busy. Whoever is next may have missed its message.
if fields == 0 then
  wake(head)
end
local ids, place = redis.call('LRANGE', KEYS[2], 0, -1), 0
for i, other in ipairs(ids) do
  if other == id then
    place = i
    break
  end
end
-- While one of ours waits, nothing is left that does not vanish when everybody is gone.
local function keep()
  local kept = redis.pcall('PEXPIRE', KEYS[4], STAYS)
  redis.pcall('PEXPIRE', KEYS[2], STAYS)
  redis.pcall('PEXPIRE', KEYS[3], STAYS)
  return kept
end
if place > 0 then
  -- After a write, however empty, a script is not refused for lack of memory: on a full server,
  -- too, those who wait live on.
  keep()
  redis.pcall('ZADD', KEYS[4], now + ARGV[7], id)
  -- What others did to the turns must not end ours while we wait: enough for each of those before
  -- us to take theirs.
  if tonumber(redis.call('ZSCORE', KEYS[3], id) or 0) < now + (place - 1) * WAIT + WAIT / 5 then
    redis.pcall('ZADD', KEYS[3], now + place * WAIT, id)
  end
elseif ARGV[6] == '1' and #ids < 1024 then
  local last = ids[1] and redis.call('ZSCORE', KEYS[3], ids[#ids])
  local turn = last and math.max(tonumber(last), now) or now + math.max(left, 0)
  local refusal = redis.pcall('ZADD', KEYS[4], now + ARGV[7], id)
  local why = 'ZADD'
  if not failed(refusal) then
    refusal, why = redis.pcall('PEXPIRE', KEYS[4], STAYS), 'PEXPIRE'
  end
  if not failed(refusal) then
    refusal, why = redis.pcall('ZADD', KEYS[3], string.format('%.0f', turn + WAIT), id), 'ZADD'
  end
  if not failed(refusal) then
    refusal, why = redis.pcall('RPUSH', KEYS[2], id), 'RPUSH'
  end
  if failed(refusal, why) then
    redis.pcall('ZREM', KEYS[3], id)
    redis.pcall('ZREM', KEYS[4], id)
    return refusal
  end
  keep()
  place = #ids + 1
end
return {0, left, holder, place, math.max(#ids, place)}
