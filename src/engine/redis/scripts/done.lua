-- Part of scripts that change a number: `done`, what the server remembers of this request, if it
-- was executed before: the answer is the same.
if done then
  return {done:find('^no') and 0 or 1, tonumber((done:gsub('^no', '')))}
end
