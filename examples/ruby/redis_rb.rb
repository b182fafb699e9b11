# redis-rb: 5 requests per user and minute. ADDR=127.0.0.1:6379 PORT=8080 ruby redis_rb.rb, then GET /?user=bob
require "connection_pool"
require "redis"
require "webrick"

FAIL_OPEN = true # while the server is away: true admits, false refuses
# A time limit of 5 s and one attempt more are the defaults: a call that is sent twice takes its units twice.
POOL = ConnectionPool.new(size: 8, timeout: 0.5) do
  Redis.new(url: "redis://#{ENV.fetch("ADDR")}", timeout: 0.5, reconnect_attempts: 0)
end

def take(user, units) # limited, limit, remaining, retry_after, reset_after: times are seconds
  POOL.with { |redis| redis.call("GO.THROTTLE", "user:#{user}", 4, 5, 60, units) }
end

def take_and_wait(user, units, tries = 3)
  while (reply = take(user, units))[3].positive? && (tries -= 1).positive? # -1: admitted, or never will be
    sleep reply[3] * (1 + rand / 10) # up to a tenth longer, so that not all come at once
  end
  reply
end

known = POOL.with { |redis| redis.call("COMMAND", "INFO", "GO.THROTTLE") }.first
abort "the server does not know GO.THROTTLE: load the module gothrottle" unless known

server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: ENV.fetch("PORT").to_i, AccessLog: [])
server.mount_proc "/" do |request, response|
  user, units = request.query.values_at("user", "units")
  reply = request.path == "/wait" ? take_and_wait(user, units || 1) : take(user, units || 1)
  limited, limit, remaining, retry_after, reset_after = reply
  response.status = limited == 1 ? 429 : 200
  response["RateLimit-Policy"] = "\"user\";q=#{limit};w=60"
  response["RateLimit"] = "\"user\";r=#{remaining};t=#{retry_after.positive? ? retry_after : [reset_after, 12].min}"
  response["Retry-After"] = retry_after if retry_after.positive?
rescue Redis::BaseConnectionError, ConnectionPool::TimeoutError
  response.status = FAIL_OPEN ? 200 : 503
end # other errors, as of a key of the wrong type, end in the status 500
server.start
