# redis-rb: 5 requests per user and minute. ADDR=127.0.0.1:6379 PORT=8080 ruby redis_rb.rb, then GET /?user=bob
require "connection_pool"
require "digest"
require "redis"
require "webrick"

FAIL_OPEN = true # while the server is unavailable: true admits, false refuses
# A time limit of 5 s and one more attempt are the defaults: a call that is sent twice takes its units twice.
POOL = ConnectionPool.new(size: 8, timeout: 0.5) do
  Redis.new(url: "redis://#{ENV.fetch("ADDR")}", timeout: 0.5, reconnect_attempts: 0)
end

# The text of gothrottle.lua, if SCRIPT names the file, or is 1 in the repository: for a server without the module.
FILE = ENV["SCRIPT"] == "1" ? File.join(__dir__, "../../script/gothrottle.lua") : ENV["SCRIPT"]
SCRIPT = FILE && File.read(FILE)
SHA = SCRIPT && Digest::SHA1.hexdigest(SCRIPT)
def by_script(redis, key, *words)
  redis.evalsha(SHA, [key], words)
rescue Redis::CommandError => error
  raise unless error.message.start_with?("NOSCRIPT")
  redis.eval(SCRIPT, [key], words)
end

def take(user, units) # limited, limit, remaining, retry_after, reset_after: times are seconds
  POOL.with do |redis|
    next by_script(redis, "user:#{user}", "GO.THROTTLE", 4, 5, 60, units) if SCRIPT
    redis.call("GO.THROTTLE", "user:#{user}", 4, 5, 60, units)
  end
end

def take_and_wait(user, units, tries = 3)
  while (reply = take(user, units))[3].positive? && (tries -= 1).positive? # -1: admitted, or never will be
    sleep reply[3] * (1 + rand / 10) # up to a tenth longer, so that not all come together
  end
  reply
end

$away = false
def log(error) # once, and not for each request; nil: the server decided
  warn error ? "no decision: #{error.message}" : "the server decides again" if $away != !error.nil?
  $away = !error.nil?
end

begin
  known = SCRIPT || POOL.with { |redis| redis.call("COMMAND", "INFO", "GO.THROTTLE") }.first
  abort "the server does not know GO.THROTTLE: load the module gothrottle" unless known
rescue Redis::BaseError => error
  log error # the service starts, and each request tries again
end

server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: ENV.fetch("PORT").to_i, AccessLog: [])
server.mount_proc "/" do |request, response|
  user, units = request.query["user"], [1, request.query["units"].to_i].max
  raise WEBrick::HTTPStatus::BadRequest, "?user= is missing" unless user
  reply = request.path == "/wait" ? take_and_wait(user, units) : take(user, units)
  log nil
  limited, limit, remaining, retry_after, reset_after = reply
  response.status = limited == 1 ? 429 : 200
  response["RateLimit-Policy"] = "\"user\";q=#{limit};w=60"
  response["RateLimit"] = "\"user\";r=#{remaining};t=#{retry_after.positive? ? retry_after : [reset_after, 12].min}"
  response["Retry-After"] = retry_after if retry_after.positive?
rescue Redis::BaseError, ConnectionPool::TimeoutError => error
  raise if error.message.match?(/\A(ERR (?!max number)|WRONG|NOAUTH|NOPERM)/) # a fault of this program: status 500
  log error
  response.status = FAIL_OPEN ? 200 : 503
end
server.start
