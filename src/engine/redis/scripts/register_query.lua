-- Says what is written, or that it is what the asker has seen; changes nothing.
-- KEYS[1] the register; ARGV[1] the version seen, 0: there was none; or nothing.
-- {1, version, value}; {0}: there is none; {2}: it is the one seen; {-1}: a hash, but no register.
local fields = redis.call('HMGET', KEYS[1], 'snib', 'version', 'value')
local version = tonumber((fields[2] or '0'):match('^%d+$') or 2^53)
if version >= 2^53 or (fields[1] ~= 'register' and redis.call('EXISTS', KEYS[1]) == 1) then
  return {-1}
end
if ARGV[1] and version == tonumber(ARGV[1]) then
  return {2}
end
return version == 0 and {0} or {1, version, fields[3] or ''}
