-- Part of the acquire scripts: `left`, `holder`: whose it is, nil: free, or held by this id. For a moment a free one may be meant for
-- others (see hand_over.lua): who could stand in the queue does so.
local left, holder
if fields > 0 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  if fields > 1 then
    return {-1, fields, redis.call('HEXISTS', KEYS[1], 'mode')}
  end
  left, holder = redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1]
elseif fields == 0 and queue and ARGV[3] == '0' and tonumber(number) > 0 then
  local free = redis.pcall('ZSCORE', alive, 'free')
  local time = type(free) == 'string' and redis.call('TIME')
  if time and -tonumber(free) > time[1] * 1000 + math.floor(time[2] / 1000) then
    left, holder = -2, ''
  end
end
if left and (not queue or ARGV[3] ~= '0') then
  return {0, left, holder}
end
if left then
  -- include wait.lua
end
