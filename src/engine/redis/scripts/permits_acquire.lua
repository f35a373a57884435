-- Takes permits, all or none; or, if some of these ids are out, starts their leases again. KEYS[1]
-- how many are free, KEYS[2] who is out until when; ARGV[1] lease in ms, 0: for ever, ARGV[2] the
-- token this hold has as far as the client knows, else 0: with one it confirms and takes none,
-- ARGV[3] ids, 16 bytes each, one after the other, ARGV[4] channel. {1, now in us}: taken; {2, now
-- in us}: were out; {0, free, ms until the first expires or -1}: not enough; {0}: there are none;
-- {3}: with a token: none of them is out; {-1}: a string, but no number.
-- include permits.lua
-- include reap.lua
local ids, own = {}, {}
for at = 1, #ARGV[3], 16 do
  local id = ARGV[3]:sub(at, at + 15)
  ids[#ids + 1] = id
  if redis.call('ZSCORE', KEYS[2], id) then
    own[#own + 1] = id
  end
end
local status = #own > 0 and 2 or ARGV[2] ~= '0' and 3 or #ids > 0 and #ids <= left and 1 or 0
local ttl = (status == 1 or status == 2) and redis.call('PTTL', KEYS[1]) or -1
if ttl > 0 then
  redis.call('PEXPIRE', KEYS[2], ttl) -- is it allowed? Those that are out live as long as the number
end
if status == 1 then
  left = redis.call('INCRBY', KEYS[1], -#ids) -- who takes by INCRBY may give back
end
if status == 2 then
  redis.call('ZREM', KEYS[2], '') -- after a write, however empty, a full server does not refuse what is only confirmed
end
if status == 1 or status == 2 then
  local until_ms = ARGV[1] == '0' and 922337203685477 or now + ARGV[1]
  for _, id in ipairs(status == 1 and ids or own) do
    local added = redis.pcall('ZADD', KEYS[2], until_ms, id)
    if type(added) == 'table' then -- no rights: the first one has failed
      if status == 1 then
        redis.call('INCRBY', KEYS[1], #ids)
      end
      added.err = added.err .. ' (ZADD)'
      return added
    end
  end
  if ttl > 0 then
    redis.call('PEXPIRE', KEYS[2], ttl)
  end
end
if dead > 0 and left > 0 then
  redis.pcall('PUBLISH', ARGV[4], left)
end
if status == 1 or status == 2 then
  return {status, time[1] .. string.format('%06d', time[2])}
end
if status == 3 or not free then
  return {status}
end
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local ends = tonumber(first[2] or 922337203685477)
return {0, left, ends < 922337203685477 and ends - now or -1}
