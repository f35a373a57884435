-- Part of scripts about a lock with a queue: takes the id `leaver` out of it; `stood`: it stood
-- there.
local all = redis.pcall('LRANGE', queue, 0, -1)
for _, entry in ipairs(all.err and {} or all) do
  if string.sub(entry, 1, #leaver + 1) == leaver .. ' ' then
    stood = redis.pcall('LREM', queue, 1, entry) == 1 or stood
  end
end
