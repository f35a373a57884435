-- The read-write lock, in Redisson's format: a hash with the mode, a field for each reader with the
-- number of its holds, the writer's with ":write" behind its id; and a key for each hold of a
-- reader, whose time to live is that hold's lease. A reader without such keys is dead. KEYS[1] the
-- lock, KEYS[2] of a reader the key of its hold; ARGV[1] number of the verb: 1 acquire, 2 release,
-- 3 renew, 5 force, ARGV[2] number of the side: 5 read, 6 write, ARGV[3] hold id, ARGV[4] the name
-- in its braces, ARGV[5] channel, ARGV[6] lease in ms, ARGV[7] the token this hold has as far as
-- the client knows, else 0: with one it confirms and begins nothing, ARGV[8] id of the write hold
-- under which it reads, or ''. acquire: {1, now in us}: taken; {2, now in us}: was held by this id;
-- {0, left, holder}: busy, or gone. release, renew: {1}: done; {0, left, holder}: not held by this
-- id. force: {1, left, holder}: this was there; {0, -2, ''}: nothing. {-1, fields, what}: a hash,
-- but no such lock; what as in what_hash.lua. What is refused is refused before the lock changes,
-- or taken back.
local verb, side, id = ARGV[1], ARGV[2], ARGV[3]
local field = side == '6' and id .. ':write' or id
-- include failed.lua
-- include lock_field.lua
local count, mode, holds = redis.call('HLEN', KEYS[1]), nil, {}
if count > 0 then
  mode = redis.call('HGET', KEYS[1], 'mode')
  local all = (mode == 'read' or mode == 'write' or count == 1) and redis.call('HGETALL', KEYS[1]) or {}
  for at = 1, #all, 2 do
    if lock_field(all[at], all[at + 1]) then
      holds[all[at]] = math.min(tonumber(all[at + 1]), 1000)
    elseif all[at] ~= 'mode' then
      return {-1, count, 0}
    end
  end
  if not mode or count == 1 or #all == 0 then
    return {-1, count, count == 1 and not mode and 2 or 0}
  end
end
local function hold_key(reader, i)
  return ARGV[4] .. ':' .. reader .. ':rwlock_timeout:' .. i
end
-- Of all but one: the writer's field; of the readers one that has the most time left, that time,
-- and those that are dead.
local function look(but)
  local writer, reader, best, dead = nil, nil, -2, {}
  for other, n in pairs(holds) do
    if other == but then
      n = 0
    elseif string.sub(other, -6) == ':write' then
      writer = other
    else
      local left = -2
      for i = 1, n do
        left = math.max(left, redis.call('PTTL', hold_key(other, i)))
      end
      if left == -2 then
        dead[#dead + 1] = other
      elseif not reader or left > best or left == best and other < reader then
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
-- Ends this hold, and with the last one the lock. Those whose writer goes let others in beside
-- them.
local function finish()
  local writer, reader, best = look(field)
  if not writer and not reader then
    redis.call('DEL', KEYS[1], KEYS[2] or KEYS[1])
    redis.pcall('PUBLISH', ARGV[5], side == '6' and '1' or '0')
    return
  end
  redis.call('HDEL', KEYS[1], field)
  if side == '5' then
    redis.pcall('DEL', KEYS[2])
  end
  if not writer and best > 0 then
    redis.pcall('PEXPIRE', KEYS[1], best)
  end
  if side == '6' then
    redis.pcall('HSET', KEYS[1], 'mode', 'read')
    redis.pcall('PUBLISH', ARGV[5], '1')
  end
end
-- The side that is forced takes everybody along: a writer's own reads, too.
if verb == '5' then
  local writer, reader, best = look()
  if not (side == '6' and writer or side == '5' and not writer and reader) then
    return {0, -2, ''}
  end
  local left, holder = shown(writer, reader, best)
  redis.call('DEL', KEYS[1])
  for other, n in pairs(holds) do
    for i = 1, string.sub(other, -6) == ':write' and 0 or n do
      redis.pcall('DEL', hold_key(other, i))
    end
  end
  redis.pcall('PUBLISH', ARGV[5], '1')
  return {1, left, holder}
end
local stands = holds[field]
local held = stands and (side == '6' or redis.call('EXISTS', KEYS[2]) == 1)
if not held and (verb ~= '1' or ARGV[7] ~= '0') then
  local writer, reader, best = look()
  if stands and verb == '2' then
    finish()
  end
  -- Other readers took nothing from one that is gone.
  return {0, shown(writer, side == '6' and reader, side == '6' and best or -2)}
end
if verb == '2' then
  finish()
  return {1}
end
local now = redis.call('TIME')
now = now[1] .. string.format('%06d', now[2])
if held then
  -- The lock lives as long as the longest of its holds.
  local _, _, best = look()
  if side == '5' then
    redis.call('PEXPIRE', KEYS[2], ARGV[6])
    best = redis.call('PTTL', KEYS[1])
  end
  redis.call('PEXPIRE', KEYS[1], string.format('%d', math.max(best, ARGV[6])))
  return verb == '3' and {1} or {2, now}
end
local most = side == '5' and count > 0 and redis.call('PTTL', KEYS[1]) or -2
if side == '6' or mode == 'write' then
  local writer, reader, best, dead = look()
  if (writer and writer ~= ARGV[8] .. ':write') or (reader and side == '6') then
    return {0, shown(writer, reader, best)}
  end
  mode = (writer or side == '6') and 'write'
  for _, other in ipairs(side == '6' and dead or {}) do
    redis.call('HDEL', KEYS[1], other)
  end
end
if side == '5' then
  redis.call('SET', KEYS[2], '1', 'PX', ARGV[6])
end
local refusal, why = redis.pcall('HSET', KEYS[1], 'mode', mode or 'read', field, '1'), 'HSET'
if not failed(refusal) then
  refusal, why = redis.pcall('PEXPIRE', KEYS[1], string.format('%d', math.max(most, ARGV[6]))), 'PEXPIRE'
end
if failed(refusal, why) then
  if side == '5' then
    redis.pcall('DEL', KEYS[2])
  end
  if count == 0 or side == '6' then
    redis.pcall('DEL', KEYS[1])
  else
    redis.pcall('HDEL', KEYS[1], field)
  end
  return refusal
end
return {1, now}
