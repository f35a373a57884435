-- Gives permits back: with a memory of the request all or none, else as many as are out. Nothing in
-- here is refused by a server that is full: its first write is ZREM, and after a write a script is
-- not refused for lack of memory. KEYS[1] how many are free, KEYS[2] who is out until when, KEYS[3]
-- memory of this request, if any; ARGV[1] ids, 16 bytes each, one after the other, ARGV[2] channel,
-- ARGV[3] how long to remember in ms, ARGV[4] 1: a repetition, whose refusal is remembered, too.
-- {1}: given back, now or before; {0}: none of them, or not all, are out, now or before; {-1}: a
-- string, but no number.
-- include permits.lua
local done = KEYS[3] and redis.call('GET', KEYS[3])
if done then
  return {done == 'no' and 0 or 1}
end
-- include reap.lua
local members, scores = {}, {}
for at = 1, #ARGV[1], 16 do
  local id = ARGV[1]:sub(at, at + 15)
  local score = redis.call('ZSCORE', KEYS[2], id)
  if not score then
    -- Redisson up to 3.16 writes the id as 32 hex digits.
    id = id:gsub('.', function(byte) return string.format('%02x', byte:byte()) end)
    score = redis.call('ZSCORE', KEYS[2], id)
  end
  if score and not scores[id] then
    members[#members + 1] = id
    scores[id] = score
  end
end
if KEYS[3] and #members < #ARGV[1] / 16 then
  members = {}
end
for _, id in ipairs(members) do
  redis.call('ZREM', KEYS[2], id) -- the first of them, or none, is refused
end
if #members > 0 and free then
  local changed = redis.pcall('INCRBY', KEYS[1], #members)
  if type(changed) == 'table' then -- what cannot go back stays out
    for _, id in ipairs(members) do
      redis.pcall('ZADD', KEYS[2], scores[id], id)
    end
    changed.err = changed.err .. ' (INCRBY)'
    return changed
  end
  left = changed
end
if (#members > 0 or dead > 0) and free and left > 0 then
  redis.pcall('PUBLISH', ARGV[2], left)
end
if #members == 0 then
  if ARGV[4] == '1' then
    redis.pcall('SET', KEYS[3], 'no', 'PX', ARGV[3])
  end
  return {0}
end
if KEYS[3] then
  redis.pcall('SET', KEYS[3], '0', 'PX', ARGV[3])
end
return {1}
