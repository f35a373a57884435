-- Part of scripts about locks: what they answer of a hash that is no lock of the kind that was
-- asked for: -1, how many fields, and 2: a lock (not fit for a read or a write), 1: a read-write
-- lock, 0: somebody else's.
local function what_hash(count)
  local mode = redis.call('HGET', KEYS[1], 'mode')
  return {-1, count, (mode == 'read' or mode == 'write') and count > 1 and 1 or 0}
end
