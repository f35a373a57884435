-- Part of the acquire scripts: `left`, `holder`: whose it is, nil: free, or held by this id. For a
-- moment a free one may be meant for others (see hand_over.lua): who could stand in the queue does
-- so. `number`: see wait.lua; `stands`: it is above 0, which its first digit says: how texts
-- compare depends on the server's locale.
local left, holder
local stands = number and string.find(number, '^[1-9]')
if fields == 1 then
  local held = redis.call('HGETALL', KEYS[1])
  holder = held[1]
  if holder ~= ARGV[1] then
    -- include lock_field.lua
    if not lock_field(holder, held[2]) then
      return {-1, 1, 0}
    end
    left = redis.call('PTTL', KEYS[1])
  end
elseif fields > 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  -- include what_hash.lua
  return what_hash(fields)
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
