-- Writes a value if the version is the expected one. Versions rise also beyond a deletion: max(last
-- + 1, now in us). KEYS[1] the register, KEYS[2] memory of this request; ARGV[1] expected version,
-- 0: none, -1: any, ARGV[2] value, ARGV[3] channel, ARGV[4] how long to remember in ms, ARGV[5] 1:
-- a repetition, whose refusal is remembered, too. {1, version}: written, now or before; {0,
-- version}: it is another, now or before; {-1}: a hash, but no register.
local fields = redis.call('HMGET', KEYS[1], 'snib', 'version')
local done = redis.call('GET', KEYS[2])
-- include done.lua
local version = tonumber((fields[2] or '0'):match('^%d+$') or 2^53)
if version >= 2^53 or (fields[1] ~= 'register' and redis.call('EXISTS', KEYS[1]) == 1) then
  return {-1}
end
if ARGV[1] ~= '-1' and tonumber(ARGV[1]) ~= version then
  if ARGV[5] == '1' then
    redis.pcall('SET', KEYS[2], 'no' .. (fields[2] or '0'), 'PX', ARGV[4])
  end
  return {0, version}
end
local now = redis.call('TIME')
version = math.max(version + 1, now[1] * 1000000 + now[2])
local text = string.format('%.0f', version)
redis.call('SET', KEYS[2], text, 'PX', ARGV[4])
local set = redis.pcall('HSET', KEYS[1], 'snib', 'register', 'version', text, 'value', ARGV[2])
if type(set) == 'table' then
  redis.pcall('DEL', KEYS[2])
  set.err = set.err .. ' (HSET)'
  return set
end
redis.pcall('PUBLISH', ARGV[3], text)
return {1, version}
