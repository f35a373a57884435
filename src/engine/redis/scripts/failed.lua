-- Part of scripts: whether a command was refused. Servers before 7.2 do not say which one: it is
-- written behind what they say.
local function failed(reply, command)
  if type(reply) ~= 'table' or not reply.err then
    return false
  end
  if command then
    reply.err = reply.err .. ' (' .. command .. ')'
  end
  return true
end
