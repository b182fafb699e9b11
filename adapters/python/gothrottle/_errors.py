"""Errors, and what the server's replies mean."""
from __future__ import annotations

import asyncio
import re

import redis


class Error(Exception):
    """Any error of this package."""


class UnavailableError(Error):
    """Nobody decided: there was no reply in time or no connection, or the server can't write, or refuses this client. A call
    that was sent may have taken its units. The fail_* options decide then."""

    def __init__(self, text: str, sent: bool = True):
        super().__init__(text)
        self.sent = sent


class NoModuleError(Error):
    """The server doesn't know the command: load the module gothrottle, or pass script=True."""


class ParamsError(Error, ValueError):
    """The limit or the quantity makes no sense, or the key holds something else. It's a fault of the program."""


FAILURES = redis.RedisError, redis.exceptions.RedisClusterException, OSError, asyncio.TimeoutError  # others are bugs
CODE = re.compile(r"(?!WRONGTYPE|CROSSSLOT)[A-Z]{2,} ")  # redis-py takes ERR away
PASSES = re.compile(r"internal error|a forked process|max number of clients|The server is in the middle of")


def classify(error: Exception) -> Error:
    """Returns what an error of redis-py means."""
    text = str(error)
    if isinstance(error, Error):
        return error
    if isinstance(error, (redis.DataError, redis.exceptions.ClusterCrossSlotError)) or text.endswith("must map to the same key slot"):
        return ParamsError(text)
    if type(error) is not redis.ResponseError or CODE.match(text) or PASSES.search(text):
        refused = any(isinstance(one, (ConnectionRefusedError, FileNotFoundError)) for one in (error, error.__cause__, error.__context__))
        return UnavailableError(text or type(error).__name__, sent=not refused)
    if re.search(r"unknown command ['`](GO\.|EVAL)|this server refuses TIME", text, re.I):
        return NoModuleError(f"{text}: load the module gothrottle into the server, or pass script=True")
    return ParamsError(text)
