-- changes lists what has changed since a revision. It writes nothing, so that a full server answers.
-- ARGV: channel, life, revision, how many at most
local last, out = rev, {}
local found = redis.call('ZRANGEBYSCORE', log, '(' .. ARGV[3], '+inf', 'WITHSCORES', 'LIMIT', '0', ARGV[4])
local more = #found / 2 == tonumber(ARGV[4])
for i = 1, #found, 2 do
  local view = redis.call('HGET', gates, found[i])
  if view then
    out[#out + 1] = found[i]
    out[#out + 1] = view
  end
  if more then last = tonumber(found[i + 1]) end
end
return {life, num(last), more and '1' or '0', out}
