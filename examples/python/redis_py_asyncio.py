"""FastAPI with redis-py's asyncio: 5 requests per user and minute, refused while the server is away (fail closed)."""
import asyncio, logging, os, random, re, sys
import uvicorn
from fastapi import FastAPI, Request, Response
from redis import asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

# No retries: a call that timed out may have taken its units, and sent again takes them twice.
# No asyncio.wait_for: before redis-py 4.5.5 a cancelled call leaves its reply to the next call.
server = redis.Redis.from_url("redis://" + os.environ["ADDR"], socket_timeout=0.25, socket_connect_timeout=0.25,
                              retry=Retry(NoBackoff(), 0))
REFUSAL = re.compile("maxmemory|read only|MISCONF|NOREPLICAS|MASTERDOWN|BUSY")  # the server cannot write now
app = FastAPI()
away = False

def log(error):  # once, and not for each request; None: the server decided
    global away
    if away != bool(error):
        logging.warning("no decision: %s" if error else "the server decides again", *filter(None, [error]))
    away = bool(error)
async def take(user, units=1):  # limited, limit, remaining, retry_after, reset_after: see docs/commands.md; in seconds
    return await server.execute_command("GO.THROTTLE", f"user:{user}", 4, 5, 60, units)
async def take_and_wait(user, units=1, tries=3):  # for jobs: up to a tenth longer, so that not all come at once
    while (reply := await take(user, units))[3] > 0 and (tries := tries - 1):  # -1: admitted, or it never will be
        await asyncio.sleep(reply[3] * random.uniform(1, 1.1))
    return reply

@app.on_event("startup")
async def check():
    try:
        if (await server.execute_command("COMMAND INFO", "GO.THROTTLE"))[0] is None:
            sys.exit("the server does not know GO.THROTTLE: load the module gothrottle")
    except (redis.ConnectionError, redis.TimeoutError) as error:
        log(error)  # the service starts, and each request tries again
@app.get("/")
@app.get("/wait")
async def hello(request: Request, user: str = None, units: int = 1):
    if user is None:
        return Response("?user= is missing\n", 400)
    ask = take_and_wait if request.url.path == "/wait" else take
    try:
        limited, limit, remaining, retry, reset = await ask(user, max(1, units))
    except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError) as error:
        if isinstance(error, redis.ResponseError) and not REFUSAL.search(str(error)):
            raise  # a fault of this program, as a key of the wrong type
        log(error)
        return Response("try again\n", 503)  # fail open: return Response("hello, not counted\n")
    log(None)
    more = retry if retry > 0 else min(reset, 12)  # seconds until there is more: a unit drains in 12
    headers = {"RateLimit-Policy": f'"user";q={limit};w=60', "RateLimit": f'"user";r={remaining};t={more}'}
    headers |= {"Retry-After": str(retry)} if retry > 0 else {}
    return Response("too many requests\n", 429, headers) if limited else Response("hello\n", 200, headers)
uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]))
