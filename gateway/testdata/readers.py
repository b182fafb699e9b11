"""Says how WSGI servers read targets of requests: see readers.cjs."""

import json
import posixpath
import sys
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from gunicorn.util import split_request_uri, unquote_to_wsgi_str


def route(path):
    if path == "/api" or path.startswith("/api/"):
        return "api"
    return path.strip("/") if path in ("/login", "/login/", "/health", "/health/") else "other"


def split(target):
    """Some take what follows two slashes for a host, and put it back as they remember."""
    u = urlsplit(target)
    return u.path if u.scheme or not u.netloc else f"/{u.netloc}{u.path}"


READERS = {
    "gunicorn": lambda t: unquote_to_wsgi_str(split_request_uri(t).path or ""),
    "wsgiref": lambda t: unquote("/" + t.split("?", 1)[0].lstrip("/") if t.startswith("//") else t.split("?", 1)[0], "iso-8859-1"),
    "werkzeug": lambda t: unquote(split(t)),
    "urlsplit": lambda t: unquote(urlsplit(t).path),
    "static files": lambda t: posixpath.normpath(unquote_to_bytes(t.split("?", 1)[0].split("#", 1)[0]).decode("utf-8", "replace")),
}

for line in sys.stdin:
    served = {}
    for name, read in READERS.items():
        try:
            served[name] = route(read(json.loads(line)))
        except ValueError:
            served[name] = ""
    print(json.dumps(served))
