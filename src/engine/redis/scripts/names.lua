-- Part of scripts about a lock with a queue: `tag`, the lock's name in its braces, and two keys
-- made of it. `queue`, a list: who waits, the longest first, as "id lease number tokens asked", see
-- wait.lua; `share`: see hand_over.lua. No keys of the request: who has no right to them is to have
-- a lock without a queue.
local tag = string.find(KEYS[1], '{', 1, true) and KEYS[1] or '{' .. KEYS[1] .. '}'
local queue, share = 'snib_queue:' .. tag, 'snib_share:' .. tag
