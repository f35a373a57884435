-- Part of the acquire scripts: the lock is somebody else's. Stands in the queue, or goes on standing there, and answers.
-- `queue`: who waits, the longest first, as "id lease number tokens"; `alive`: until when each is believed to wait, ms by the server's clock;
-- `number`: of this question of the waiter's, not above 0: it is not to stand there from now on; `waiter_lease`: how long one lives unheard in ms.
-- `tokens`: how many of the counter's its hold is to have, '0': the time is its token. Whoever is not in `alive` waits no more. What is refused (a full server, no right, another type) leaves the waiter without a place.
local place, ids = 0, {}
if tonumber(number) > 0 then
  local time = redis.call('TIME')
  local ends = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + waiter_lease)
  local entry = table.concat({ARGV[1], ARGV[2], number, tokens}, ' ')
  if number ~= '1' and type(redis.pcall('ZSCORE', alive, ARGV[1])) == 'string' then
    -- After a write, however empty, a script is not refused for lack of memory: on a full server, too, those who stand there live on.
    redis.pcall('PEXPIRE', alive, '60000')
  end
  local fresh = redis.pcall('ZADD', alive, ends, ARGV[1])
  if fresh == 0 or (fresh == 1 and number ~= '1') then
    ids = redis.pcall('LRANGE', queue, 0, -1)
    for i, other in ipairs(ids) do
      if string.sub(other, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then
        redis.pcall('LSET', queue, i - 1, entry)
        place = i
        break
      end
    end
  end
  if place == 0 and type(fresh) == 'number' then
    local length = redis.pcall('RPUSH', queue, entry)
    if type(length) == 'number' and length <= 1024 then
      place = length
    else
      redis.pcall('RPOP', queue)
      redis.pcall('ZREM', alive, ARGV[1])
    end
  end
  redis.pcall('PEXPIRE', queue, '60000')
  redis.pcall('PEXPIRE', alive, '60000')
end
local waiters = math.max(#ids, place)
if waiters == 0 then
  waiters = redis.pcall('LLEN', queue)
end
return {0, left, holder, place, type(waiters) == 'number' and waiters or 0}
