-- Part of the scripts that end a hold of a lock with a queue: if it is free now, makes the first in
-- the queue that lives the holder and tells its client, "id last-token tokens number streak name".
-- `granted`: so it was. `removed`: 1 if the hold was ended by this very script. Out are the dead,
-- whose time is over or whose client nobody listens for, `leaver`, and who cannot be made holder.
-- `channel`: of the lock; `late`: us that a token which is a time is ahead of it; `streak`: how
-- many in a row are handed on with this one. After 16 it is asked whether others listen, too (more
-- than those of our own clients, who listen to another channel besides). If so the lock is left
-- free, which `free` says to them (to Redisson '00' is the number 0, to us it is nothing), and for
-- 25 ms, while `share` exists, ours do not take it: see busy.lua. The first is told to come after
-- it: token 0. Who may not ask or tell leaves the lock free.
local entry, time, back = redis.pcall('LPOP', queue), nil, false
if type(entry) == 'string' then
  time = redis.pcall('TIME')
  back = time.err or removed == 0 and redis.pcall('EXISTS', KEYS[1]) ~= 0
end
local function new_token(tokens)
  if tokens == '0' and late == 0 then
    return time[1] .. string.format('%06d', time[2])
  elseif tokens == '0' then
    return string.format('%.0f', time[1] * 1000000 + time[2] + late)
  end
  local counter = 'redisson_lock_token:' .. tag
  local last, least = redis.pcall('INCRBY', counter, tokens), time[1] * 1000000 + time[2] + tokens - 1
  if type(last) == 'table' or (last < least and redis.pcall('SET', counter, string.format('%.0f', least)).err) then
    return nil
  end
  local token = redis.pcall('GET', counter)
  return type(token) == 'string' and token
end
while type(entry) == 'string' and not back do
  local id, lease, number, stray, tokens, asked = string.match(entry, '^(%S+) (%d+) (%d+)(%+?) (%d+) (%d+)$')
  local told = id and id ~= leaver and time[1] - asked < 5 and 'snib_granted:' .. string.sub(id, 1, 36)
  local listeners = told and (streak + 0 > 16 and redis.pcall('PUBSUB', 'NUMSUB', told, channel, 'snib_listening:' .. tag)
    or redis.pcall('PUBSUB', 'NUMSUB', told))
  local hears = listeners and not listeners.err and listeners[2] > 0
  local others = hears and listeners[6] and listeners[4] > listeners[6]
  back = others or listeners and listeners.err
  if others then
    redis.pcall('PUBLISH', told, id .. ' 0 0 ' .. number .. ' 0 ' .. KEYS[1])
    redis.pcall('SET', share, '1', 'PX', '25')
    free = '00'
  end
  local token = hears and not others and new_token(tokens)
  granted = token and type(redis.pcall('HSET', KEYS[1], id, '1')) == 'number'
    and type(redis.pcall('PEXPIRE', KEYS[1], lease)) == 'number'
  if granted then
    local row = listeners[6] and '1' or streak
    local message = id .. ' ' .. token .. ' ' .. tokens .. ' ' .. number .. ' ' .. row .. ' ' .. KEYS[1]
    back = type(redis.pcall('PUBLISH', told, message)) ~= 'number'
  end
  if token and (back or not granted) then
    if type(redis.pcall('HDEL', KEYS[1], id)) == 'table' then
      redis.pcall('DEL', KEYS[1])
    end
    granted = false
  end
  if stray == '+' and not back then
    local leaver, stood = id, nil
    -- include leave.lua
  end
  if granted then
    if asked ~= time[1] then
      redis.pcall('PEXPIRE', queue, '60000')
    end
    break
  elseif not back then
    entry = redis.pcall('LPOP', queue)
  end
end
if back then
  redis.pcall('LPUSH', queue, entry)
  if type(redis.pcall('PEXPIRE', queue, '60000')) == 'table' then
    redis.pcall('LPOP', queue) -- no queue without a time to live
  end
end
