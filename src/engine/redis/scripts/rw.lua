-- Both sides of a read-write lock, in Redisson's format: a hash of "mode", a field of each reader, and the writer's with ":write" behind its
-- id; and a key for each hold of a reader, whose time to live is that hold's lease. A reader without such keys is dead.
-- KEYS[1] the lock; ARGV[1] number of the verb: 1 acquire, 2 release, 3 renew, 5 force, ARGV[2] number of the side: 5 read, 6 write,
-- ARGV[3] hold id, ARGV[4] the name in its braces, ARGV[5] channel, ARGV[6] lease in ms, ARGV[7] the token this hold has as far as the
-- client knows, else 0: with one it confirms and begins nothing, ARGV[8] id of the write hold under which it reads, or ''.
-- acquire: {1, now in us}: taken; {2, now in us}: was held by this id; {0, left, holder}: busy, or gone. release, renew: {1}: done; {0, left, holder}:
-- not held by this id. force: {1, left, holder}: this was there; {0, -2, ''}: nothing. {-1, fields, 0}: a hash, but no such lock.
local verb, side, id = ARGV[1], ARGV[2], ARGV[3]
local field = side == '6' and id .. ':write' or id
-- include failed.lua
local mode = redis.pcall('HGET', KEYS[1], 'mode')
if failed(mode) then
  return mode
end
if not mode and redis.call('EXISTS', KEYS[1]) == 1 then
  return {-1, redis.call('HLEN', KEYS[1]), 0}
end
local function hold_key(reader, i)
  return ARGV[4] .. ':' .. reader .. ':rwlock_timeout:' .. i
end
local function holds(reader)
  return math.min(tonumber(redis.call('HGET', KEYS[1], reader)) or 0, 1000)
end
local function writes(other)
  return string.sub(other, -6) == ':write'
end
-- The writer's field; of all readers one that has the most time left, that time, and those that are dead.
local function look()
  local writer, reader, best, dead = nil, nil, -2, {}
  for _, other in ipairs(redis.call('HKEYS', KEYS[1])) do
    if writes(other) then
      writer = other
    elseif other ~= 'mode' then
      local left = -2
      for i = 1, holds(other) do
        left = math.max(left, redis.call('PTTL', hold_key(other, i)))
      end
      if left == -2 then
        dead[#dead + 1] = other
      elseif not reader or left > best then
        reader, best = other, left
      end
    end
  end
  return writer, reader, best, dead
end
local function shown(writer, reader, best)
  if writer then
    return redis.call('PTTL', KEYS[1]), string.sub(writer, 1, -7)
  end
  return best, reader or ''
end
local function drop(other)
  for i = 1, writes(other) and 0 or holds(other) do
    redis.call('DEL', hold_key(other, i))
  end
  return redis.pcall('HDEL', KEYS[1], other)
end
-- What remains after somebody went: nobody, or readers. Those whose writer went let others in beside them.
local function settle(message)
  local writer, reader, best = look()
  if not writer and not reader then
    redis.call('DEL', KEYS[1])
    redis.pcall('PUBLISH', ARGV[5], message)
  elseif not writer then
    if best > 0 then
      redis.pcall('PEXPIRE', KEYS[1], best)
    end
    if message == '1' then
      redis.pcall('HSET', KEYS[1], 'mode', 'read')
      redis.pcall('PUBLISH', ARGV[5], message)
    end
  end
end
-- The side that is forced takes everybody along: a writer's own reads, too.
if verb == '5' then
  local writer, reader, best = look()
  if not (side == '6' and writer or side == '5' and not writer and reader) then
    return {0, -2, ''}
  end
  local left, holder = shown(writer, reader, best)
  for _, other in ipairs(redis.call('HKEYS', KEYS[1])) do
    local removed = other ~= 'mode' and drop(other)
    if failed(removed) then
      return removed
    end
  end
  settle('1')
  return {1, left, holder}
end
local stands = redis.call('HEXISTS', KEYS[1], field) == 1
local held = stands and (side == '6' or redis.call('EXISTS', hold_key(id, 1)) == 1)
if not held and (verb ~= '1' or ARGV[7] ~= '0') then
  if stands and verb == '2' then
    drop(field)
    settle('0')
  end
  -- Other readers took nothing from one that is gone.
  local writer, reader, best = look()
  return {0, shown(writer, side == '6' and reader, side == '6' and best or -2)}
end
if verb == '2' then
  local removed = drop(field)
  if failed(removed) then
    return removed
  end
  settle(side == '6' and '1' or '0')
  return {1}
end
local now = redis.call('TIME')
now = now[1] .. string.format('%06d', now[2])
-- The lock lives as long as the longest of its holds.
local function live(most)
  return redis.pcall('PEXPIRE', KEYS[1], string.format('%d', math.max(most, ARGV[6])))
end
if held then
  local kept = side == '5' and redis.pcall('PEXPIRE', hold_key(id, 1), ARGV[6])
  if not failed(kept) then
    local _, _, best = look()
    kept = live(side == '5' and redis.call('PTTL', KEYS[1]) or best)
  end
  return failed(kept) and kept or verb == '3' and {1} or {2, now}
end
if side == '6' or mode == 'write' then
  local writer, reader, best, dead = look()
  if (writer and writer ~= ARGV[8] .. ':write') or (reader and side == '6') then
    return {0, shown(writer, reader, best)}
  end
  mode = (writer or side == '6') and 'write'
  for _, other in ipairs(side == '6' and dead or {}) do
    drop(other)
  end
end
local set = redis.pcall('HSET', KEYS[1], 'mode', mode or 'read', field, '1')
if failed(set) then
  return set
end
set = side == '5' and redis.pcall('SET', hold_key(id, 1), '1', 'PX', ARGV[6])
if not failed(set) then
  set = live(side == '5' and redis.call('PTTL', KEYS[1]) or -2)
end
if failed(set) then
  drop(field)
  settle('0')
  return set
end
return {1, now}
