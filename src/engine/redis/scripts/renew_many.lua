-- Starts the leases of many holds again: for each what renew.lua does. KEYS[i] one of n locks;
-- ARGV[i] hold id; ARGV[n + i] lease in ms, of which only the first is given if all are the same.
-- {n, i, answer, ...}: all are renewed but KEYS[i], and so on, in order: what renew.lua answers
-- about it, or an error of its own.
local call, keys, args, n = redis.pcall, KEYS, ARGV, #KEYS
local answers, lease = {n}, args[n + 1]
-- Whose the lock is that this id does not hold, as not_held.lua says it; or what refused to tell.
local function not_held(key)
  -- include lock_field.lua
  local fields = call('HLEN', key)
  if fields == 0 then
    return {0, -2, ''}
  end
  local held = fields == 1 and call('HGETALL', key)
  local left = held and call('PTTL', key)
  if type(fields) == 'table' or held and held.err or type(left) == 'table' then
    return type(fields) == 'table' and fields or held.err and held or left, ' (HLEN, HGETALL, PTTL)'
  elseif held and lock_field(held[1], held[2]) then
    return {0, left, held[1]}
  end
  return {-1, fields, 0}
end
for i = 1, n do
  local key, doing = keys[i], ' (HEXISTS)'
  local answer = call('HEXISTS', key, args[i])
  if answer == 1 then
    doing = ' (PEXPIRE)'
    answer = call('PEXPIRE', key, args[n + i] or lease)
  elseif answer == 0 then
    answer, doing = not_held(key)
  end
  if answer ~= 1 then
    if answer.err and doing then
      answer.err = answer.err .. doing
    end
    answers[#answers + 1] = i
    answers[#answers + 1] = answer
  end
end
return answers
