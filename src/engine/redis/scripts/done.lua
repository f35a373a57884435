-- Part of scripts that change something once: `done`, what the server remembers of this request, if
-- it was executed before: the answer is the same. "no": a condition was not met; then the number
-- that was answered, if there was one.
if done then
  return {done:find('^no') and 0 or 1, tonumber((done:gsub('^no', '')))}
end
