"""Flask with redis-py: 5 requests per user and minute. Requests go on while the server is away (fail open)."""
import os, random, re, sys, time
import redis
from flask import Flask, request
from redis.backoff import NoBackoff
from redis.retry import Retry

# No retries: a call that timed out may have taken its units, and sent again takes them twice.
server = redis.Redis.from_url("redis://" + os.environ["ADDR"], socket_timeout=0.25, socket_connect_timeout=0.25,
                              retry=Retry(NoBackoff(), 0))
SCRIPT = os.environ.get("SCRIPT")  # the file gothrottle.lua, for a server without the module
by_script = SCRIPT and server.register_script(open(SCRIPT).read())
REFUSAL = re.compile("maxmemory|read only|MISCONF|NOREPLICAS|MASTERDOWN|BUSY")  # the server cannot write now
app = Flask(__name__)
away = False

def log(error):  # once, and not for each request; None: the server decided
    global away
    if away != bool(error):
        app.logger.warning("no decision: %s" if error else "the server decides again", *filter(None, [error]))
    away = bool(error)
def take(user, units=1):  # limited, limit, remaining, retry_after, reset_after: see docs/commands.md; in seconds
    if by_script:
        return by_script([f"user:{user}"], ["GO.THROTTLE", 4, 5, 60, units])
    return server.execute_command("GO.THROTTLE", f"user:{user}", 4, 5, 60, units)
def take_and_wait(user, units=1, tries=3):
    """For jobs: waits as long as the server says, and up to a tenth longer, so that not all jobs come at once."""
    while (reply := take(user, units))[3] > 0 and (tries := tries - 1):  # -1: admitted, or it never will be
        time.sleep(reply[3] * random.uniform(1, 1.1))
    return reply

@app.route("/")
@app.route("/wait")
def hello():
    ask = take_and_wait if request.path == "/wait" else take
    user, units = request.args["user"], max(1, request.args.get("units", 1, int))  # without a user the status is 400
    try:
        limited, limit, remaining, retry, reset = ask(user, units)
    except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError) as error:
        if isinstance(error, redis.ResponseError) and not REFUSAL.search(str(error)):
            raise  # a fault of this program, as a key of the wrong type
        log(error)
        return "hello, not counted\n"  # fail closed: return "try again\n", 503
    log(None)
    more = retry if retry > 0 else min(reset, 12)  # seconds until there is more: a unit drains in 12
    headers = {"RateLimit-Policy": f'"user";q={limit};w=60', "RateLimit": f'"user";r={remaining};t={more}'}
    headers |= {"Retry-After": str(retry)} if retry > 0 else {}
    return ("too many requests\n", 429, headers) if limited else ("hello\n", 200, headers)

try:
    if not SCRIPT and server.execute_command("COMMAND INFO", "GO.THROTTLE")[0] is None:
        sys.exit("the server does not know GO.THROTTLE: load the module gothrottle")
except (redis.ConnectionError, redis.TimeoutError) as error:
    log(error)  # the service starts, and each request tries again
app.run("127.0.0.1", int(os.environ["PORT"]), threaded=True)
