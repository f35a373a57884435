-- Part of scripts about locks: whether a field and its value are a lock's: the id of a hold of
-- Redisson's or ours, uuid:n, and a positive number. Whatever else stands in a hash is somebody
-- else's.
local function lock_field(field, value)
  return string.find(field, '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x:.')
    and string.find(value, '^[1-9]%d*$')
end
