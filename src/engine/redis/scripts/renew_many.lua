-- Starts the leases of many holds again: for each what renew.lua does.
-- KEYS[i] one of n locks; ARGV[i] hold id; ARGV[n + i] lease in ms, of which only the first is given if all are the same.
-- {n, i, answer, ...}: all are renewed but KEYS[i], and so on, in order: what renew.lua answers about it, or an error of its own.
local call, keys, args, n = redis.pcall, KEYS, ARGV, #KEYS
local answers, lease = {n}, args[n + 1]
for i = 1, n do
  local key = keys[i]
  local answer = call('HEXISTS', key, args[i])
  if answer == 1 then
    answer = call('PEXPIRE', key, args[n + i] or lease)
  elseif answer == 0 then
    local fields = call('HLEN', key)
    answer = {0, call('PTTL', key), fields == 1 and call('HKEYS', key)[1] or ''}
  end
  if answer ~= 1 then
    answers[#answers + 1] = i
    answers[#answers + 1] = answer
  end
end
return answers
