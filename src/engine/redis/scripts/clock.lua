-- Part of scripts: `time`, as TIME says it; `now`, ms by the server's clock.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
