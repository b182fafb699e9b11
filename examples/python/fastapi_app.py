"""FastAPI: 5 requests per user and minute. While the server is unavailable, all are refused with 503."""
import os
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from gothrottle import aio

limits = aio.connect("redis://" + os.environ["ADDR"], fail_closed=True, script=os.environ.get("SCRIPT") == "1")
users = limits.rate("user", per_minute=5)
app = FastAPI(on_startup=[limits.check], on_shutdown=[limits.close])  # a server without the module ends the program

async def limited(request: Request, response: Response, user: str = "", units: int = 1):
    if not user:
        raise HTTPException(400, "?user= is missing")  # better: from the session
    ask = users.wait if request.url.path == "/wait" else users.allow  # a job waits for its turn
    result = await ask(user, max(1, units))
    if not result.allowed:
        raise HTTPException(result.status, headers=result.headers)
    response.headers.update(result.headers)

@app.get("/", dependencies=[Depends(limited)])
@app.get("/wait", dependencies=[Depends(limited)])
async def hello():
    return "hello"

uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]))
