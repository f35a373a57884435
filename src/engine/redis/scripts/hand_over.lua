-- Part of the scripts that end a hold of a lock with a queue: if it is free now, makes the first in the queue that lives the holder and tells
-- its client, "id last-token tokens number name". `granted`: so it was. Out are the dead, whose time is over or whose client nobody listens
-- for, `leaver`, and who cannot be made holder. `channel`: of the lock; `late`: us that a token which is a time is ahead of it.
-- While others listen too (more than those of our own clients, who listen to another channel besides), only 16 are made holders in a row,
-- which `share` counts. Then the lock is left free, which `free` says to the others (to Redisson '00' is the number 0, to us it is
-- nothing), and for 25 ms ours do not take it: then `share` is minus that instant, see busy.lua. The first is told to come after it: token 0.
-- Who may not ask or tell leaves the lock free.
local function put_back(entry)
  redis.pcall('LPUSH', queue, entry)
  redis.pcall('PEXPIRE', queue, '60000')
end
local entry = redis.pcall('LPOP', queue)
if type(entry) == 'string' and redis.pcall('EXISTS', KEYS[1]) ~= 0 then
  put_back(entry)
  entry = nil
end
local time = type(entry) == 'string' and redis.call('TIME')
local now = time and time[1] * 1000 + math.floor(time[2] / 1000)
-- include failed.lua
local function new_token(tokens)
  if tokens == '0' then
    return string.format('%.0f', time[1] * 1000000 + time[2] + late)
  end
  local counter = 'redisson_lock_token:' .. tag
  local last, least = redis.pcall('INCRBY', counter, tokens), time[1] * 1000000 + time[2] + tokens - 1
  if failed(last) or (last < least and failed(redis.pcall('SET', counter, string.format('%.0f', least)))) then
    return nil
  end
  return redis.call('GET', counter)
end
while type(entry) == 'string' do
  local id, lease, number, stray, tokens, ends = string.match(entry, '^(%S+) (%d+) (%d+)(%+?) (%d+) (%d+)$')
  local told = id and id ~= leaver and tonumber(ends) > now and 'snib_granted:' .. string.sub(id, 1, 36)
  local listeners = told and redis.pcall('PUBSUB', 'NUMSUB', channel, 'snib_listening:' .. tag, told)
  local hears = listeners and not failed(listeners) and listeners[6] > 0
  local others = hears and listeners[2] > listeners[4]
  local row = others and redis.pcall('GET', share)
  row = type(row) == 'string' and tonumber(row) or 0
  local token = hears and row < 16 and new_token(tokens)
  granted = token and not failed(redis.pcall('HSET', KEYS[1], id, '1')) and not failed(redis.pcall('PEXPIRE', KEYS[1], lease))
  local untold = granted and failed(redis.pcall('PUBLISH', told, table.concat({id, token, tokens, number, KEYS[1]}, ' ')))
  if token and (untold or not granted) then
    redis.pcall('HDEL', KEYS[1], id)
    granted = false
  end
  if row >= 16 then
    redis.pcall('PUBLISH', told, id .. ' 0 0 ' .. number .. ' ' .. KEYS[1])
    redis.pcall('SET', share, string.format('%.0f', -now - 25), 'PX', '60000')
    free = '00'
  end
  if row >= 16 or untold or failed(listeners) then
    put_back(entry)
    break
  end
  if stray == '+' then
    local leaver, stood = id, nil
    -- include leave.lua
  end
  if granted then
    if others then
      redis.pcall('SET', share, math.max(row, 0) + 1, 'PX', '60000')
    end
    break
  end
  entry = redis.pcall('LPOP', queue)
end
