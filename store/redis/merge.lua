-- merge joins a node's views and frees its leases.
-- ARGV: channel, life, node, whether it leaves, how many views, {gate, token, view}..., {gate, token}...
begin()
forget()
local from, changed, freed, fenced = rev, {}, {}, {}
local at = 6
for _ = 1, tonumber(ARGV[5]) do
  local id, token, view = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  at = at + 3
  local old = redis.call('HGET', gates, id) or ''
  local lease = token ~= '0000000000000000' and redis.call('HGET', leases, id)
  if lease and string.sub(lease, 1, 16) > token then
    fenced[#fenced + 1] = id
    fenced[#fenced + 1] = old
  else
    local new, keep = join(old, view)
    if new ~= old then
      store(id, new, keep)
      changed[#changed + 1] = id
      changed[#changed + 1] = new
    end
  end
end
while at < #ARGV do
  local id, token = ARGV[at], ARGV[at + 1]
  at = at + 2
  local lease = redis.call('HGET', leases, id)
  if lease and (string.sub(lease, 1, 16) == token or token == '0000000000000000' and string.sub(lease, 35) == ARGV[3]) then
    -- The token stays: it fences what an older owner may still say.
    redis.call('HSET', leases, id, string.sub(lease, 1, 16) .. ' 0000000000000000 ')
    freed[#freed + 1] = id
  end
end
if ARGV[4] == '1' then redis.call('ZREM', nodes, ARGV[3]) end
if rev > from then written() end
spread(from, changed, {}, freed, {})
return {life, fenced}
