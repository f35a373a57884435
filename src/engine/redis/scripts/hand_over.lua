-- Part of the scripts that end a hold, when somebody stands in the queue (see wait.lua) and the lock is free: makes the first that lives
-- the holder and tells its client, "id last-token tokens number name". `granted`: so it was. Out are the dead, whose time is over or whose client nobody
-- listens for, and who cannot be made holder. `counter`: of tokens; `channel`, `listening`: channels of the lock, and of our own clients there.
-- While others listen too, only 16 are made holders in a row. Then the lock is left free, which `free` says to the others (to Redisson '00' is
-- the number 0, to us it is nothing), and for 25 ms ours do not take it (see busy.lua); the first is told to come after that: token 0.
-- Who may not ask or tell leaves the lock free.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function failed(reply)
  return type(reply) == 'table' and reply.err
end
local function new_token(tokens)
  if tokens == '0' then
    return time[1] .. string.format('%06d', time[2])
  end
  local last, least = redis.pcall('INCRBY', counter, tokens), time[1] * 1000000 + time[2] + tokens - 1
  if failed(last) or (last < least and failed(redis.pcall('SET', counter, string.format('%.0f', least)))) then
    return nil
  end
  return redis.call('GET', counter)
end
while not granted do
  local entry = redis.pcall('LINDEX', queue, 0)
  local id, lease, number, tokens = string.match(type(entry) == 'string' and entry or '', '^(%S+) (%d+) (%d+) (%d+)$')
  local ends = id and redis.pcall('ZSCORE', alive, id)
  if type(ends) == 'string' and tonumber(ends) > now then
    local told = 'snib_granted:' .. string.sub(id, 1, 36)
    local listeners = redis.pcall('PUBSUB', 'NUMSUB', channel, listening, told)
    if failed(listeners) then
      break
    end
    local hears, others = listeners[6] > 0, listeners[2] > listeners[4]
    local row = hears and others and redis.pcall('ZSCORE', alive, 'row')
    if type(row) == 'string' and tonumber(row) >= 16 then
      redis.pcall('PUBLISH', told, id .. ' 0 0 ' .. number .. ' ' .. KEYS[1])
      redis.pcall('ZADD', alive, string.format('%.0f', -now - 25), 'free', 0, 'row')
      free = '00'
      break
    end
    local token = hears and new_token(tokens)
    granted = token and not failed(redis.pcall('HSET', KEYS[1], id, '1')) and not failed(redis.pcall('PEXPIRE', KEYS[1], lease))
    if granted and failed(redis.pcall('PUBLISH', told, table.concat({id, token, tokens, number, KEYS[1]}, ' '))) then
      redis.pcall('HDEL', KEYS[1], id)
      granted = false
      break
    elseif granted and others then
      redis.pcall('ZINCRBY', alive, 1, 'row')
    elseif token and not granted then
      redis.pcall('HDEL', KEYS[1], id)
    end
  end
  if type(redis.pcall('LPOP', queue)) ~= 'string' then
    break
  end
  redis.pcall('ZREM', alive, id or '')
end
