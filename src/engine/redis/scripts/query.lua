-- Says what stands under a name, whatever it is; changes nothing. KEYS[1] the object; ARGV[1] the
-- name in its braces. Keys as arguments, since who has no right to them is to see less, not
-- nothing: ARGV[2] token counter of a fenced lock, ARGV[3] queue of a fair lock, ARGV[4] permits
-- that are out, ARGV[5] queue of a plain or fenced one, ARGV[6] turns of a fair one. {1, what,
-- left, holder, holders, waiters, token, value, next, next_left}: it is there; what: "lock",
-- "fenced", "fair", "read", "write", "permits", "counter", "register"; waiters -1: unknown here;
-- token and value are texts, '' where there is none; next: the first in the queue of a fair lock or
-- '', next_left: until its turn is over or -1. {0, "lock" or "fair", -2, '', 0, waiters, token, '',
-- next, next_left}: nothing is. {-1, type, n}: something else, a hash of n fields.
local hash = redis.pcall('HLEN', KEYS[1])
local kind, count = 'hash', hash
if type(hash) == 'table' then
  if string.sub(hash.err, 1, 9) ~= 'WRONGTYPE' then
    hash.err = hash.err .. ' (HLEN)'
    return hash
  end
  kind = redis.call('TYPE', KEYS[1]).ok
end
local function text(reply)
  return type(reply) == 'string' and reply or ''
end
-- include lock_field.lua
local left = redis.call('PTTL', KEYS[1])
if kind == 'hash' then
  local mode = count > 1 and redis.call('HGET', KEYS[1], 'mode')
  if mode == 'read' or mode == 'write' then
    local holder, holders, all = '', 0, redis.call('HGETALL', KEYS[1])
    for at = 1, #all, 2 do
      local field, value = all[at], all[at + 1]
      if field ~= 'mode' then
        if not lock_field(field, value) then
          return {-1, kind, count}
        end
        local write = string.sub(field, -6) == ':write'
        local live = write
        for i = 1, not write and math.min(tonumber(value), 1000) or 0 do
          -- Who may not look takes it for alive.
          live = live or redis.pcall('EXISTS', ARGV[1] .. ':' .. field .. ':rwlock_timeout:' .. i) ~= 0
        end
        if live then
          holders = holders + 1
          if holder == '' or write then
            holder = write and string.sub(field, 1, -7) or field
          end
        end
      end
    end
    return {holders > 0 and 1 or 0, mode, left, holder, holders, -1, '', '', '', -1}
  end
  if count > 1 then
    if redis.call('HGET', KEYS[1], 'snib') == 'register' then
      return {1, 'register', left, '', 0, -1, '', text(redis.call('HGET', KEYS[1], 'version')), '', -1}
    end
    return {-1, kind, count}
  end
  local held = count == 1 and redis.call('HGETALL', KEYS[1]) or {}
  if count == 1 and not lock_field(held[1], held[2]) then
    return {-1, kind, count}
  end
  local token = text(redis.pcall('GET', ARGV[2]))
  local waiters = redis.pcall('LLEN', ARGV[3])
  if type(waiters) ~= 'number' or waiters == 0 then
    waiters = -1
  end
  kind = waiters > 0 and 'fair' or token ~= '' and 'fenced' or 'lock'
  local first, first_left = '', -1
  if waiters > 0 then
    first = text(redis.pcall('LINDEX', ARGV[3], 0))
    local turn = tonumber(text(redis.pcall('ZSCORE', ARGV[6], first)))
    -- include clock.lua
    first_left = turn and math.max(turn - now, 0) or -1
  end
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
  return {count, kind, left, held[1] or '', count, waiters, token, '', first, first_left}
end
if kind == 'string' then
  local value = redis.call('GET', KEYS[1])
  if not string.match(value, '^-?%d+$') or #value > 19 then
    return {-1, kind, #value}
  end
  local taken = redis.pcall('ZCARD', ARGV[4])
  if type(taken) ~= 'number' or taken == 0 then
    return {1, 'counter', left, '', 0, -1, '', value, '', -1}
  end
  -- include clock.lua
  taken = redis.call('ZCOUNT', ARGV[4], string.format('%.0f', now), '+inf')
  return {1, 'permits', left, '', taken, -1, '', value, '', -1}
end
return {-1, kind, 0}
