-- Starts the leases of many holds again: for each what renew.lua does.
-- KEYS[i] a lock; ARGV[2i - 1] hold id, ARGV[2i] lease in ms.
-- For each what renew.lua answers: {1}: renewed; {0, left, holder}: not held by this id; or an error of its own.
local renewed, answers = {1}, {}
for i = 1, #KEYS do
  local answer = redis.pcall('HEXISTS', KEYS[i], ARGV[2 * i - 1])
  if answer == 1 then
    answer = redis.pcall('PEXPIRE', KEYS[i], ARGV[2 * i])
    if answer == 1 then
      answer = renewed
    end
  elseif answer == 0 then
    local fields = redis.call('HLEN', KEYS[i])
    answer = {0, redis.call('PTTL', KEYS[i]), fields == 1 and redis.call('HKEYS', KEYS[i])[1] or ''}
  end
  answers[i] = answer
end
return answers
