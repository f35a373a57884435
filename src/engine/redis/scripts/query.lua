-- Says what stands under a name, whatever it is; changes nothing.
-- KEYS[1] the object; ARGV[1] the name in its braces. Keys as arguments, since who has no right to them is to see less, not nothing:
-- ARGV[2] token counter of a fenced lock, ARGV[3] queue of a fair lock, ARGV[4] permits that are out, ARGV[5] queue of a plain or fenced one.
-- {1, what, left, holder, holders, waiters, token, value}: it is there; what: "lock", "fenced", "fair", "read", "write",
-- "permits", "counter", "register"; waiters -1: unknown here; token and value are texts, '' where there is none.
-- {0, "lock" or "fair", -2, '', 0, waiters, token, ''}: nothing is. {-1, type, n}: something else, a hash of n fields.
local fields = redis.pcall('HKEYS', KEYS[1])
local kind = 'hash'
if fields.err then
  if string.sub(fields.err, 1, 9) ~= 'WRONGTYPE' then
    return fields
  end
  kind = redis.call('TYPE', KEYS[1]).ok
end
local function text(reply)
  return type(reply) == 'string' and reply or ''
end
local left = redis.call('PTTL', KEYS[1])
if kind == 'hash' then
  local mode = fields[1] and redis.call('HGET', KEYS[1], 'mode')
  if mode then
    local holder, holders = '', 0
    for _, field in ipairs(fields) do
      if field ~= 'mode' then
        local write = string.sub(field, -6) == ':write'
        local live = write
        for i = 1, not write and math.min(tonumber(redis.call('HGET', KEYS[1], field)) or 0, 1000) or 0 do
          live = live or redis.call('EXISTS', ARGV[1] .. ':' .. field .. ':rwlock_timeout:' .. i) == 1
        end
        if live then
          holders = holders + 1
          if holder == '' or write then
            holder = write and string.sub(field, 1, -7) or field
          end
        end
      end
    end
    return {holders > 0 and 1 or 0, mode == 'write' and mode or 'read', left, holder, holders, -1, '', ''}
  end
  if #fields > 1 then
    if redis.call('HGET', KEYS[1], 'snib') == 'register' then
      return {1, 'register', left, '', 0, -1, '', text(redis.call('HGET', KEYS[1], 'version'))}
    end
    return {-1, kind, #fields}
  end
  local token = text(redis.pcall('GET', ARGV[2]))
  local waiters = redis.pcall('LLEN', ARGV[3])
  if type(waiters) ~= 'number' or waiters == 0 then
    waiters = -1
  end
  kind = waiters > 0 and 'fair' or token ~= '' and 'fenced' or 'lock'
  if waiters < 0 then
    local second = redis.call('TIME')[1]
    local queue = redis.pcall('LRANGE', ARGV[5], 0, -1)
    waiters = queue.err and -1 or 0
    for _, entry in ipairs(queue.err and {} or queue) do
      if second - (tonumber(string.match(entry, ' (%d+)$')) or 0) < 5 then
        waiters = waiters + 1
      end
    end
  end
  return {#fields, kind, left, fields[1] or '', #fields, waiters, token, ''}
end
if kind == 'string' then
  local value = redis.call('GET', KEYS[1])
  if not string.match(value, '^-?%d+$') or #value > 19 then
    return {-1, kind, #value}
  end
  local taken = redis.pcall('ZCARD', ARGV[4])
  if type(taken) ~= 'number' or taken == 0 then
    return {1, 'counter', left, '', 0, -1, '', value}
  end
  -- include clock.lua
  taken = redis.call('ZCOUNT', ARGV[4], string.format('%.0f', now), '+inf')
  return {1, 'permits', left, '', taken, -1, '', value}
end
return {-1, kind, 0}
