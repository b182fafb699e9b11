"""Flask-Limiter with its windows in the server: 5 requests per user and minute."""
import os, sys
from flask import Flask, request
from flask_limiter import Limiter
import limits_storage  # makes the scheme gothrottle known

app = Flask(__name__)
limiter = Limiter(lambda: request.args["user"], app=app, storage_uri="gothrottle://" + os.environ["ADDR"],
                  strategy="moving-window", default_limits=["5 per minute"], headers_enabled=True,
                  swallow_errors=True)  # fail open; in_memory_fallback_enabled=True lets each process decide by itself
if not limiter.storage.check():
    sys.exit("the server is away or does not know GO.THROTTLE and GO.QUOTA: load the module gothrottle")

@app.route("/")
def hello():
    return "hello\n"

app.run("127.0.0.1", int(os.environ["PORT"]), threaded=True)
