-- Part of scripts about a hold that is not there: answers whose the lock is, {0, left, holder}, or
-- what held.lua says of none.
-- include held.lua
return {0, redis.call('PTTL', KEYS[1]), held[1]}
