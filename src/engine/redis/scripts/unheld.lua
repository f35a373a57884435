-- Part of scripts: no hold without a lease. Takes back the hold that this script has just begun on
-- a lock that was free, by what the user may.
if type(redis.pcall('HDEL', KEYS[1], ARGV[1])) == 'table' then
  redis.pcall('DEL', KEYS[1])
end
