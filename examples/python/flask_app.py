"""Flask: 5 requests per user and minute. While the server is unavailable, all are admitted."""
import os
from flask import Flask, g, request
import gothrottle

limits = gothrottle.connect("redis://" + os.environ["ADDR"], fail_open=True, script=os.environ.get("SCRIPT") == "1")
users = limits.rate("user", per_minute=5)
app = Flask(__name__)

@app.before_request
def limited():
    ask = users.wait if request.path == "/wait" else users.allow  # a job waits for its turn
    g.result = ask(request.args["user"], max(1, request.args.get("units", 1, int)))  # better: from the session
    if not g.result.allowed:
        return "too many requests\n", g.result.status

@app.after_request
def headers(response):
    response.headers.update(g.result.headers if "result" in g else {})
    return response

@app.route("/")
@app.route("/wait")
def hello():
    return "hello\n"

limits.check()  # a server without the module ends the program; one that's unavailable is logged
app.run("127.0.0.1", int(os.environ["PORT"]), threaded=True)
