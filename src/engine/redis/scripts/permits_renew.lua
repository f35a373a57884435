-- Starts the leases of permits again, of all or of none. KEYS[1] how many are free, KEYS[2] who is
-- out until when; ARGV[1] lease in ms, 0: for ever, ARGV[2] ids, 16 bytes each, one after the
-- other, ARGV[3] channel. {1}: renewed; {0}: not all of them are out; {-1}: a string, but no
-- number.
-- include permits.lua
-- include reap.lua
if dead > 0 and left > 0 then
  redis.pcall('PUBLISH', ARGV[3], left)
end
local until_ms = ARGV[1] == '0' and 922337203685477 or now + ARGV[1]
local members, named = {}, {}
for at = 1, #ARGV[2], 16 do
  local id = ARGV[2]:sub(at, at + 15)
  if not redis.call('ZSCORE', KEYS[2], id) then
    -- Redisson up to 3.16 writes the id as 32 hex digits.
    id = id:gsub('.', function(byte) return string.format('%02x', byte:byte()) end)
    if not redis.call('ZSCORE', KEYS[2], id) then
      return {0}
    end
  end
  if named[id] then
    return {0}
  end
  members[#members + 1] = id
  named[id] = true
end
if #members == 0 then
  return {0}
end
-- After a write, however empty, a script is not refused for lack of memory: a full server renews.
redis.call('ZREM', KEYS[2], '')
for _, id in ipairs(members) do
  redis.call('ZADD', KEYS[2], until_ms, id)
end
return {1}
