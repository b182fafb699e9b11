"""Flask with Flask-Limiter: 5 page views per user and minute, and 3 logins per user in 15 minutes."""
import logging, os
from flask import Flask, g, request
from flask_limiter import Limiter
import gothrottle.limits  # makes the scheme gothrottle known

logging.basicConfig()  # without it Flask-Limiter logs nothing
app = Flask(__name__)

@app.before_request  # before the limiter's: without a user the status is 400
def user():
    g.user = request.args["user"]  # better: from the session

limiter = Limiter(lambda: g.user, app=app, storage_uri="gothrottle://" + os.environ["ADDR"], strategy="moving-window",
                  headers_enabled=True, in_memory_fallback_enabled=True,  # each process decides in an outage
                  swallow_errors=True,  # else requests that are under way when an outage begins are answered with 500
                  storage_options={"script": os.environ.get("SCRIPT") == "1"})

@app.route("/")
@limiter.limit("5 per minute")
def hello():
    return "hello\n"

@app.route("/login", methods=["POST"])
@limiter.limit("3 per 15 minutes")
def login():
    return "welcome\n"

app.run("127.0.0.1", int(os.environ["PORT"]), threaded=True)
