-- lease takes the right to probe all these gates, or none.
-- ARGV: channel, life, node, grace, milliseconds, gate...
begin()
local fresh = born + tonumber(ARGV[4]) - ms
if fresh > 0 then
  -- The leases of before, if there were any, are lost here: their owners say so with their next beats.
  return {'0', num(fresh)}
end
local wait, wanted, last = 0, {}, tonumber(redis.call('HGET', meta, 'token') or '0')
for i = 6, #ARGV do
  local lease = redis.call('HGET', leases, ARGV[i])
  if lease then
    last = math.max(last, tonumber(string.sub(lease, 1, 16)))
    local till = tonumber(string.sub(lease, 18, 33))
    if till > ms and string.sub(lease, 35) ~= ARGV[3] then
      wait = math.max(wait, till - ms)
      wanted[#wanted + 1] = ARGV[i]
    end
  end
end
if wait > 0 then
  spread(rev, {}, {}, {}, wanted)
  return {'0', num(wait)}
end
-- Never below one of before, even where the store began anew: the clock is ahead of it.
local token = math.max(last + 1, us)
redis.call('HSET', meta, 'token', wide(token))
local taken = {}
for i = 6, #ARGV do
  taken[#taken + 1] = ARGV[i]
  redis.call('HSET', leases, ARGV[i], wide(token) .. ' ' .. wide(ms + tonumber(ARGV[5])) .. ' ' .. ARGV[3])
end
redis.call('PEXPIRE', leases, '86400000')
spread(rev, {}, taken, {}, {})
return {wide(token), '0'}
