-- apply makes gates what they are said to be, whatever stood there.
-- ARGV: channel, life, {gate, rest of a fact's line or nothing}...
begin()
local from, changed = rev, {}
for at = 3, #ARGV - 1, 2 do
  local id, rest = ARGV[at], ARGV[at + 1]
  local old = redis.call('HGET', gates, id) or ''
  local now = us
  for _, line in ipairs(lines(old)) do
    now = math.max(now, tonumber(string.sub(line, 3, 18)) + 1)
  end
  local view, keep
  if rest ~= '' then
    keep = '9223372036854775807'
    view = 'C ' .. wide(now) .. ' ' .. keep .. '\nF ' .. wide(now + 1) .. ' ' .. rest
  elseif old ~= '' then
    keep = '000' .. wide(ms + 3600000)
    view = 'C ' .. wide(now) .. ' ' .. keep
  end
  if view then
    store(id, view, keep)
    changed[#changed + 1] = id
    changed[#changed + 1] = view
  end
end
if rev > from then written() end
spread(from, changed, {}, {}, {})
return {life}
