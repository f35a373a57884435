-- Part of scripts: whether a command was refused.
local function failed(reply)
  return type(reply) == 'table' and reply.err
end
