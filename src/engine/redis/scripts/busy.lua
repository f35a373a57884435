-- Part of the acquire scripts: `left`, `holder`: whose it is, nil: free, or held by this id. For a moment a free one may be meant for
-- others (see hand_over.lua): who could stand in the queue does so. `number`: see wait.lua; `stands`: it is above 0, which its first
-- digit says: how texts compare depends on the server's locale.
local left, holder
local stands = number and string.find(number, '^[1-9]')
if fields == 1 then
  holder = redis.call('HKEYS', KEYS[1])[1]
  left = holder ~= ARGV[1] and redis.call('PTTL', KEYS[1])
elseif fields > 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return {-1, fields, redis.call('HEXISTS', KEYS[1], 'mode')}
elseif fields == 0 and stands and ARGV[3] == '0' then
  -- include names.lua
  if redis.pcall('EXISTS', share) == 1 then
    left, holder = -2, ''
  end
end
if left and (not number or ARGV[3] ~= '0') then
  return {0, left, holder}
end
if left then
  -- include names.lua
  -- include wait.lua
end
