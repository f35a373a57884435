-- Part of scripts about a lock with a queue: takes the id ARGV[1] out of it; `stood`: it stood there. See wait.lua.
stood = redis.pcall('ZREM', alive, ARGV[1]) == 1
for _, other in ipairs(stood and redis.pcall('LRANGE', queue, 0, -1) or {}) do
  if string.sub(other, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then
    redis.pcall('LREM', queue, 1, other)
  end
end
