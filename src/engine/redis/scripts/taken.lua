-- Part of the acquire scripts: it holds. Whoever has asked before may have stood in the queue.
if queue and number ~= '0' and number ~= '1' then
  local stood
  -- include leave.lua
end
