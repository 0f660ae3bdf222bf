-- What every script begins with. KEYS and the first two arguments are the same for all.
--
-- A gate's view is text: a line "C cleared keep", then a line "F stamp until level gravity record"
-- for each fact. The numbers have a fixed width, so that their texts compare like themselves and
-- that no number of the stamp's size goes through a float's shortest form.
local meta, gates, log, ends, leases, nodes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local channel = ARGV[1]

local time = redis.call('TIME')
local us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local ms = math.floor(us / 1000)

local known = redis.call('HMGET', meta, 'format', 'life', 'born', 'rev')
if known[1] and known[1] ~= '1' then
  return redis.error_reply('OMNINEWER ' .. known[1])
end
if not known[1] and redis.call('EXISTS', meta) == 1 then
  return redis.error_reply('OMNIFOREIGN it is no store of omniroute')
end
local life, born, rev = known[2] or '', tonumber(known[3] or '0'), tonumber(known[4] or '0')

local function num(n) return string.format('%.0f', n) end
local function wide(n) return string.format('%016.0f', n) end

-- begin makes the store where there is none, or anew. What is left of one that lost its head is removed.
local function begin(anew)
  if life ~= '' and not anew then return end
  life, born, rev = ARGV[2] .. '-' .. num(us), ms, 0
  redis.call('DEL', gates, log, ends, leases)
  redis.call('HSET', meta, 'format', '1', 'life', life, 'born', num(ms), 'rev', '0')
end

-- forget removes gates of which nothing matters any more, some at a time.
local function forget()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', num(ms), 'LIMIT', '0', '100')) do
    redis.call('HDEL', gates, id)
    redis.call('HDEL', leases, id)
    redis.call('ZREM', log, id)
    redis.call('ZREM', ends, id)
  end
end

-- spread tells everybody who listens: of nothing only if asked to.
local function spread(from, changed, taken, freed, wanted, nothing)
  if #changed + #taken + #freed + #wanted == 0 and not nothing then return end
  if #changed > 1000 then
    -- Too much for a message: who hears of a revision that it does not have asks for what it is.
    from, changed = rev, {}
  end
  local out = {}
  local function put(s) out[#out + 1] = string.len(s) .. ':' .. s end
  put(life)
  put(num(from))
  put(num(rev))
  for _, list in ipairs({changed, taken, freed, wanted}) do
    put(num(#list))
    for _, s in ipairs(list) do put(s) end
  end
  redis.call('PUBLISH', channel, table.concat(out))
end

-- written notes that gates have changed, and lets the keys end with the last of them.
local function written()
  redis.call('HSET', meta, 'rev', num(rev))
  local view = redis.call('HGET', gates, redis.call('ZRANGE', ends, '-1', '-1')[1] or '') or ''
  local last = tonumber(string.sub(view, 20, 38)) or 0
  for _, key in ipairs({gates, log, ends}) do
    if last > 4000000000000000 then
      redis.call('PERSIST', key)
    else
      redis.call('PEXPIREAT', key, num(last + 60000))
    end
  end
end

local function store(id, view, keep)
  rev = rev + 1
  redis.call('HSET', gates, id, view)
  redis.call('ZADD', log, num(rev), id)
  redis.call('ZADD', ends, keep, id)
end

-- before orders facts as Go does: byte by byte, whatever the server's locale.
local function before(a, b)
  local x, y = string.sub(a, 1, 48), string.sub(b, 1, 48)
  if x ~= y then return x < y end
  for i = 49, math.min(string.len(a), string.len(b)) do
    local p, q = string.byte(a, i), string.byte(b, i)
    if p ~= q then return p < q end
  end
  return string.len(a) < string.len(b)
end

-- lines cuts a view into its lines.
local function lines(text)
  local out, at = {}, 1
  while at <= string.len(text) do
    local stop = string.find(text, '\n', at, true) or string.len(text) + 1
    out[#out + 1] = string.sub(text, at, stop - 1)
    at = stop + 1
  end
  return out
end

-- join is resilience.View.Join.
local function join(...)
  local cleared, keep, all, seen = '0000000000000000', '0000000000000000000', {}, {}
  for _, text in ipairs({...}) do
    for _, line in ipairs(lines(text)) do
      if string.sub(line, 1, 1) == 'C' then
        local c, k = string.sub(line, 3, 18), string.sub(line, 20, 38)
        if c > cleared then cleared = c end
        if k > keep then keep = k end
      elseif not seen[line] then
        seen[line] = true
        all[#all + 1] = line
      end
    end
  end
  table.sort(all, before)
  local out = {'C ' .. cleared .. ' ' .. keep}
  for i, f in ipairs(all) do
    local stands = string.sub(f, 3, 18) > cleared
    for j = i + 1, #all do
      local g = all[j]
      if string.sub(f, 20, 38) <= string.sub(g, 20, 38) and string.sub(f, 40, 45) <= string.sub(g, 40, 45)
        and string.sub(f, 47, 48) <= string.sub(g, 47, 48) then
        stands = false
      end
    end
    if stands then out[#out + 1] = f end
  end
  return table.concat(out, '\n'), keep
end
