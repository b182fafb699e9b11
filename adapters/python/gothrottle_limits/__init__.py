"""Storages for limits, on which Flask-Limiter and slowapi stand: storage_uri="gothrottle://127.0.0.1:6379".

Importing this module makes the schemes known. Fixed windows are GO.QUOTA, moving windows are GO.WINDOW. A window that each
hit extends is not supported.
"""
from __future__ import annotations

import contextlib
import hashlib
import logging
import pathlib
import re
import threading
import time
from typing import Any, Callable, Iterator

import redis
import redis.asyncio
from limits.aio.storage import MovingWindowSupport as AsyncMovingWindowSupport
from limits.aio.storage import Storage as AsyncStorage
from limits.storage import MovingWindowSupport, Storage

from ._connect import connect

__all__ = ["GothrottleStorage", "AsyncGothrottleStorage"]

SCHEMES = ["gothrottle", "gothrottles", "gothrottle+unix", "gothrottle+sentinel", "gothrottle+cluster"]
MOST = 10**12  # limits compares with its limit by itself
LOG = logging.getLogger("gothrottle")


def _hits(reply: Any) -> int:
    return int(reply[1] - reply[2])


def _expiry(reply: Any) -> int:
    return int(time.time() + reply[4] / 1000)  # a second is cut, as by the storages of limits: frameworks add one


class _Calls:
    """What both storages ask of the server, each in one call. _ask returns what read makes of the reply."""

    base_exceptions = (redis.RedisError, redis.exceptions.RedisClusterException)
    _library: Any  # redis or redis.asyncio
    _ask: Callable[..., Any]

    def __init__(self, uri: str, key_prefix: str = "gothrottle:limits:", wrap_exceptions: bool = False,
                 script: bool | str = False, **options: Any):
        super().__init__(uri)  # type: ignore[call-arg]
        self.key_prefix, self.wrap_exceptions = key_prefix, wrap_exceptions
        text = pathlib.Path(__file__).with_name("gothrottle.lua").read_text() if script is True else script or ""
        self._script, self._sha = text, hashlib.sha1(text.encode()).hexdigest()
        # lost: whether this thread's last call had no reply. It may have taken its units. After an error Flask-Limiter and
        # slowapi check the server, and send the call again if it is back: the first check is false, so the fallback answers.
        self._here = threading.local()
        self._denied: dict[str, tuple[int, float]] = {}  # by key, the last cost that a moving window denied, and until when
        self._client = connect(self._library, uri.removeprefix("async+"), options)

    @property
    def storage(self) -> Any:
        """The client, which `flask limiter config` shows."""
        return self._client()

    def incr(self, key: str, expiry: int, elastic_expiry: bool = False, amount: int = 1) -> Any:
        if elastic_expiry:
            raise NotImplementedError("gothrottle has no window that each hit extends: use fixed-window or moving-window")
        return self._ask(_hits, "GO.QUOTA", key, MOST, expiry * 1000, amount, "MS")

    def get(self, key: str) -> Any:
        return self._ask(_hits, "GO.QUOTA_RO", key, MOST, 1000, 0, "MS")  # a window that runs keeps its own period

    def get_expiry(self, key: str) -> Any:
        return self._ask(_expiry, "GO.QUOTA_RO", key, MOST, 1000, 0, "MS")

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> Any:
        def taken(reply: Any) -> bool:
            if len(self._denied) > 10000:
                self._denied.clear()
            self._denied.pop(key, None)
            if reply[0] and amount > 1:
                self._denied[key] = amount, time.time() + expiry
            return not reply[0]

        units = amount if limit > 0 else 2  # the server wants a limit of at least 1, and never admits 2 then
        return self._ask(taken, "GO.WINDOW", key, max(limit, 1), expiry, units)

    def get_moving_window(self, key: str, limit: int, expiry: int) -> Any:
        """Shows a window as full that has no room for the cost that it denied: the test of limits 2.8 knows no cost, and
        Flask-Limiter, which tests before and deducts after a request, would never refuse one."""
        denied, until = self._denied.get(key, (1, 0.0))
        cost = denied if time.time() < until else 1

        def window(reply: Any) -> tuple[int, int]:
            limited, allowed, remaining, retry, reset = reply
            end = time.time() + (retry if limited and retry > 0 else reset) / 1000
            return int(end) - expiry, allowed if limited else allowed - remaining - cost

        return self._ask(window, "GO.WINDOW_RO", key, max(limit, 1), expiry * 1000, cost, "MS")

    def clear(self, key: str) -> Any:
        self._denied.pop(key, None)
        return self._ask(lambda reply: None, "DEL", key)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Logs what the server refuses, such as a wrong password: a fallback in memory hides the error itself. Notes whether
        there was a reply."""
        self._here.lost = False
        try:
            yield
        except (redis.ResponseError, redis.AuthenticationError) as error:
            LOG.error("%s%s", error, ": load the module gothrottle, or pass script=True" if "unknown command" in str(error) else "")
            raise
        except self.base_exceptions:
            self._here.lost = True
            raise

    def _words(self, command: str, key: str, words: tuple[Any, ...]) -> list[Any]:
        """Returns the words of a call: of the module's command, or of the script, if there is one."""
        if not self._script or command == "DEL":
            return [command, self.key_prefix + key, *words]
        return ["EVALSHA", self._sha, 1, self.key_prefix + key, command, *words]

    def _text(self, words: list[Any]) -> list[Any]:
        """Returns the words of a call that the server did not run, because it does not know the script."""
        return ["EVAL", self._script, *words[2:]]

    def _pattern(self) -> str:
        return re.sub(r"([*?\[\]\\])", r"\\\1", self.key_prefix) + "*"


class GothrottleStorage(_Calls, Storage, MovingWindowSupport):
    """The storage of gothrottle://, gothrottles:// (TLS), gothrottle+unix://, +sentinel:// and +cluster://."""

    STORAGE_SCHEME = SCHEMES
    _library = redis

    def _ask(self, read: Callable[[Any], Any], command: str, key: str, *words: Any) -> Any:
        call = self._words(command, key, words)
        with self._explained():
            try:
                return read(self._client().execute_command(*call))
            except redis.exceptions.NoScriptError:
                return read(self._client().execute_command(*self._text(call)))

    def check(self) -> bool:
        try:
            return not getattr(self._here, "lost", False) and bool(self.get("check") >= 0)
        except self.base_exceptions:
            return False
        finally:
            self._here.lost = False

    def reset(self) -> int:
        self._denied.clear()
        client = self._client()
        return sum(client.delete(key) for key in client.scan_iter(self._pattern()))


class AsyncGothrottleStorage(_Calls, AsyncStorage, AsyncMovingWindowSupport):
    """The storage of async+gothrottle:// and the other schemes after async+."""

    STORAGE_SCHEME = ["async+" + scheme for scheme in SCHEMES]
    _library = redis.asyncio

    async def _ask(self, read: Callable[[Any], Any], command: str, key: str, *words: Any) -> Any:
        call = self._words(command, key, words)
        with self._explained():
            try:
                return read(await self._client().execute_command(*call))
            except redis.exceptions.NoScriptError:
                return read(await self._client().execute_command(*self._text(call)))

    async def check(self) -> bool:
        try:
            return not getattr(self._here, "lost", False) and bool(await self.get("check") >= 0)
        except self.base_exceptions:
            return False
        finally:
            self._here.lost = False

    async def reset(self) -> int:
        self._denied.clear()
        client = self._client()
        return sum([await client.delete(key) async for key in client.scan_iter(self._pattern())])
