"""Storages for the package limits, on which Flask-Limiter and slowapi stand: storage_uri="gothrottle://127.0.0.1:6379".

Importing this module makes the schemes known. Fixed windows are GO.QUOTA, moving windows are GO.WINDOW. A window that each
hit extends is not supported.
"""
from __future__ import annotations

import re
import threading
import time
from typing import Any

import redis
import redis.asyncio
from limits.aio.storage import MovingWindowSupport as AsyncMovingWindowSupport
from limits.aio.storage import Storage as AsyncStorage
from limits.errors import ConfigurationError
from limits.storage import MovingWindowSupport, Storage

from ._errors import Error, ParamsError, UnavailableError
from ._loop import Tasks
from ._port import Port, sync
from ._redis import maker

__all__ = ["GothrottleStorage", "AsyncGothrottleStorage"]

SCHEMES = ["gothrottle", "gothrottles", "gothrottle+unix", "gothrottle+sentinel", "gothrottle+cluster"]
URLS = dict(zip(SCHEMES, ["redis", "rediss", "unix", "redis+sentinel", "redis+cluster"]))
MOST = 10**12  # limits compares with its limit by itself


class _Calls:
    """What both storages have in common."""

    base_exceptions: Any = Error
    _library: Any
    _ports: type[Port]

    def __init__(self, uri: str, key_prefix: str = "gothrottle:limits:", wrap_exceptions: bool = False,
                 script: bool | str = False, timeout: float = 0.25, **options: Any):
        super().__init__(uri)  # type: ignore[call-arg]
        self.key_prefix, self.wrap_exceptions = key_prefix, wrap_exceptions
        # lost: whether this thread's last call had no reply. It may have taken its units. After an error Flask-Limiter and
        # slowapi check the server, and send the call again if it is back: the first check is false, so the fallback answers.
        self._here = threading.local()
        self._denied: dict[str, tuple[int, float]] = {}  # by key, the last cost that a moving window denied, and until when
        scheme, _, rest = uri.removeprefix("async+").partition("://")
        try:
            self._port = self._ports(maker(self._library, f"{URLS[scheme]}://{rest}", timeout, options), timeout, script)
        except ParamsError as error:
            raise ConfigurationError(str(error)) from error

    async def _call(self, command: str, key: str, *words: Any) -> Any:
        self._here.lost = False
        try:
            return await self._port.ask([command, self.key_prefix + key, *words])
        except UnavailableError:
            self._here.lost = True
            raise

    async def _hits(self, *call: Any) -> int:
        reply = await self._call(*call)
        return int(reply[1] - reply[2])

    def _pattern(self) -> str:
        self._denied.clear()
        return re.sub(r"([*?\[\]\\])", r"\\\1", self.key_prefix) + "*"


class AsyncGothrottleStorage(_Calls, AsyncStorage, AsyncMovingWindowSupport):
    """The storage of async+gothrottle:// and the other schemes after async+. Each method is one call."""

    STORAGE_SCHEME = ["async+" + scheme for scheme in SCHEMES]
    _library, _ports = redis.asyncio, Tasks

    async def incr(self: _Calls, key: str, expiry: int, elastic_expiry: bool = False, amount: int = 1) -> int:
        if elastic_expiry:
            raise NotImplementedError("gothrottle has no window that each hit extends: use fixed-window or moving-window")
        return await self._hits("GO.QUOTA", key, MOST, expiry * 1000, amount, "MS")

    async def get(self: _Calls, key: str) -> int:
        return await self._hits("GO.QUOTA_RO", key, MOST, 1000, 0, "MS")  # a window that runs keeps its own period

    async def get_expiry(self: _Calls, key: str) -> int:
        reply = await self._call("GO.QUOTA_RO", key, MOST, 1000, 0, "MS")
        return int(time.time() + reply[4] / 1000)  # a second is cut, as by the storages of limits: frameworks add one

    async def acquire_entry(self: _Calls, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        units = amount if limit > 0 else 2  # the server wants a limit of at least 1, and never admits 2 then
        reply = await self._call("GO.WINDOW", key, max(limit, 1), expiry, units)
        if len(self._denied) > 10000:
            self._denied.clear()
        self._denied.pop(key, None)
        if reply[0] and amount > 1:
            self._denied[key] = amount, time.time() + expiry
        return not reply[0]

    async def get_moving_window(self: _Calls, key: str, limit: int, expiry: int) -> tuple[int, int]:
        """Shows a window as full that has no room for the cost that it denied: the test of limits 2.8 knows no cost, and
        Flask-Limiter, which tests before and deducts after a request, would never refuse one."""
        denied, until = self._denied.get(key, (1, 0.0))
        cost = denied if time.time() < until else 1
        limited, allowed, remaining, retry, reset = await self._call("GO.WINDOW_RO", key, max(limit, 1), expiry * 1000, cost, "MS")
        end = time.time() + (retry if limited and retry > 0 else reset) / 1000
        return int(end) - expiry, allowed if limited else allowed - remaining - cost

    async def clear(self: _Calls, key: str) -> None:
        self._denied.pop(key, None)
        await self._call("DEL", key)

    async def check(self: _Calls) -> bool:
        try:
            return not getattr(self._here, "lost", False) and await self._hits("GO.QUOTA_RO", "check", MOST, 1000, 0, "MS") >= 0
        except Error:
            return False
        finally:
            self._here.lost = False

    async def reset(self) -> int:
        client = self._port.client()
        return sum([await client.delete(key) async for key in client.scan_iter(self._pattern())])


class GothrottleStorage(_Calls, Storage, MovingWindowSupport):
    """The storage of gothrottle://, gothrottles:// (TLS), gothrottle+unix://, +sentinel:// and +cluster://."""

    STORAGE_SCHEME = SCHEMES
    _library, _ports = redis, Port
    incr: Any = sync(AsyncGothrottleStorage.incr)
    get: Any = sync(AsyncGothrottleStorage.get)
    get_expiry: Any = sync(AsyncGothrottleStorage.get_expiry)
    acquire_entry: Any = sync(AsyncGothrottleStorage.acquire_entry)
    get_moving_window: Any = sync(AsyncGothrottleStorage.get_moving_window)
    clear: Any = sync(AsyncGothrottleStorage.clear)
    check: Any = sync(AsyncGothrottleStorage.check)

    @property
    def storage(self) -> Any:
        """The client, which `flask limiter config` shows."""
        return self._port.client()

    def reset(self) -> int:
        client = self._port.client()
        return sum(client.delete(key) for key in client.scan_iter(self._pattern()))
