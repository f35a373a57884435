-- Removes a value if the version is the expected one. KEYS[1] the register, KEYS[2] memory of this
-- request; ARGV[1] expected version, -1: any, ARGV[2] channel, ARGV[3] how long to remember in ms,
-- ARGV[4] 1: a repetition, whose refusal is remembered, too. {1, 0}: removed, now or before; {0,
-- version}: it is another, 0: there is none, now or before; {-1}: a hash, but no register.
local fields = redis.call('HMGET', KEYS[1], 'snib', 'version')
local done = redis.call('GET', KEYS[2])
-- include done.lua
local version = tonumber((fields[2] or '0'):match('^%d+$') or 2^53)
if version >= 2^53 or (fields[1] ~= 'register' and redis.call('EXISTS', KEYS[1]) == 1) then
  return {-1}
end
if version == 0 or (ARGV[1] ~= '-1' and tonumber(ARGV[1]) ~= version) then
  if ARGV[4] == '1' then
    redis.pcall('SET', KEYS[2], 'no' .. (fields[2] or '0'), 'PX', ARGV[3])
  end
  return {0, version}
end
redis.call('DEL', KEYS[1])
redis.pcall('SET', KEYS[2], '0', 'PX', ARGV[3])
redis.pcall('PUBLISH', ARGV[2], '0')
return {1, 0}
