-- Part of the acquire scripts: the lock is somebody else's. Stands in the queue, or goes on
-- standing there, and answers. `number`: of this question of the waiter's, 1 the first of all, not
-- above 0: it is not to stand there from now on. With '+': an earlier one may be executed late, so
-- that it may come to stand there twice. `tokens`: how many of the counter's its hold is to have,
-- '0': the time is its token. Whoever says nothing is believed to wait for 5 s
-- (SNIB__WAITER_LEASE_MS): its entry says in which second by the server's clock it asked. What is
-- refused (a full server, no right, another type) leaves the waiter without a place. The first
-- there gives the queue its time to live. Whoever asks again renews it, and a hand-over to one that
-- asked in an earlier second.
local place, waiters = 0, nil
if stands then
  local entry = ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. number .. ' ' .. tokens .. ' ' .. redis.call('TIME')[1]
  local all = number ~= '1' and redis.pcall('LRANGE', queue, 0, -1) or {}
  for i, other in ipairs(all.err and {} or all) do
    if string.sub(other, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then
      -- After a write, however empty, a script is not refused for lack of memory: on a full server,
      -- too, those who stand there live on.
      redis.pcall('PEXPIRE', queue, '60000')
      redis.pcall('LSET', queue, i - 1, entry)
      place, waiters = i, #all
      break
    end
  end
  local length = place == 0 and redis.pcall('RPUSH', queue, entry)
  if type(length) == 'number' and length > 1024 then
    redis.pcall('RPOP', queue)
  elseif type(length) == 'number' then
    place, waiters = length, length
    if length == 1 and type(redis.pcall('PEXPIRE', queue, '60000')) == 'table' then
      -- No queue without a time to live.
      redis.pcall('LREM', queue, 1, entry)
      redis.pcall('RPOP', queue)
      place, waiters = 0, 0
    end
  end
end
if not waiters then
  waiters = redis.pcall('LLEN', queue)
end
return {0, left, holder, place, type(waiters) == 'number' and waiters or 0}
