-- beat is a node's sign of life.
-- ARGV: channel, life, node, how many nodes to list, {gate, token, milliseconds}...
-- A store that lost a part, since the server evicts keys, begins anew: the nodes bring all of it back.
local known = redis.call('HLEN', gates)
begin(known ~= redis.call('ZCARD', log) or known ~= redis.call('ZCARD', ends))
forget()
redis.call('ZADD', nodes, num(ms), ARGV[3])
redis.call('ZREMRANGEBYSCORE', nodes, '-inf', num(ms - 60000))
redis.call('PEXPIRE', nodes, '3600000')
redis.call('PEXPIRE', meta, '2764800000') -- 32 days, longer than any exclusion
local lost = {}
for at = 5, #ARGV - 2, 3 do
  local id, token = ARGV[at], ARGV[at + 1]
  local lease = redis.call('HGET', leases, id)
  if lease and (string.sub(lease, 1, 16) ~= token or string.sub(lease, 35) == '') then
    -- Another has it, or it was given back while this was on its way.
    lost[#lost + 1] = id
  else
    redis.call('HSET', leases, id, token .. ' ' .. wide(ms + tonumber(ARGV[at + 2])) .. ' ' .. ARGV[3])
    redis.call('PEXPIRE', leases, '86400000')
  end
end
local listed = {}
if ARGV[4] ~= '0' then
  listed = redis.call('ZREVRANGE', nodes, '0', num(tonumber(ARGV[4]) - 1), 'WITHSCORES')
end
return {life, num(rev), num(us), num(redis.call('ZCARD', nodes)), lost, listed}
