-- check does once all that the other scripts do, and leaves nothing behind.
redis.call('HLEN', gates)
redis.call('ZCARD', log)
redis.call('ZCARD', ends)
redis.call('HSET', leases, '', '')
redis.call('HDEL', leases, '')
redis.call('ZADD', nodes, 'XX', '0', '')
spread(rev, {}, {}, {}, {}, true)
return {life}
