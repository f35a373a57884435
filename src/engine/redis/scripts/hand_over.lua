-- Part of the scripts that end a hold, when somebody stands in the queue (see wait.lua) and the lock is free: makes the first that lives
-- the holder and tells its client, "id token number name". `granted`: so it was. Out are the dead, whose time is over or whose client nobody
-- listens for, and those whom the server refuses. `counter`: of tokens; `channel`, `listening`: channels of the lock, and of our own
-- clients there. While others listen too, only 16 are made holders in a row. Then the lock is left free, which `free` says to the others (to
-- Redisson '00' is the number 0, to us it is nothing), and the first is told to come in a moment: token 0.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local listeners = redis.pcall('PUBSUB', 'NUMSUB', channel, listening)
local others = listeners.err or listeners[2] > listeners[4]
local row = others and redis.pcall('ZSCORE', alive, 'row')
local yield = type(row) == 'string' and tonumber(row) >= 16
local function failed(reply)
  return type(reply) == 'table' and reply.err
end
local function new_token(tokens)
  local token = time[1] .. string.format('%06d', time[2])
  local last = tokens ~= '0' and redis.pcall('INCR', counter)
  if failed(last) then
    return nil
  end
  if last and last >= tonumber(token) then
    return redis.call('GET', counter)
  end
  return not (last and failed(redis.pcall('SET', counter, token))) and token
end
local function hold(id, lease, tokens)
  local token = new_token(tokens)
  if token and not failed(redis.pcall('HSET', KEYS[1], id, '1')) and not failed(redis.pcall('PEXPIRE', KEYS[1], lease)) then
    return token
  end
end
while not granted do
  local entry = redis.pcall('LINDEX', queue, 0)
  local id, lease, number, tokens = string.match(type(entry) == 'string' and entry or '', '^(%S+) (%d+) (%d+) (%d+)$')
  local ends = id and redis.pcall('ZSCORE', alive, id)
  if type(ends) == 'string' and tonumber(ends) > now then
    local token = yield and '0' or hold(id, lease, tokens)
    local told = token and redis.pcall('PUBLISH', 'snib_granted:' .. string.sub(id, 1, 36), id .. ' ' .. token .. ' ' .. number .. ' ' .. KEYS[1])
    told = type(told) == 'number' and told > 0
    if yield and told then
      redis.pcall('ZREM', alive, 'row')
      free = '00'
      break
    end
    granted = told
    if granted and others then
      redis.pcall('ZINCRBY', alive, 1, 'row')
    elseif not granted then
      redis.pcall('HDEL', KEYS[1], id)
    end
  end
  if type(redis.pcall('LPOP', queue)) ~= 'string' then
    break
  end
  redis.pcall('ZREM', alive, id or '')
end
