-- Part of the acquire scripts: it holds. Whoever has asked before may have stood in the queue.
if number and number ~= '0' and number ~= '1' then
  local leaver, stood = ARGV[1], nil
  -- include names.lua
  -- include leave.lua
end
