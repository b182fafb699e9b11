"""Rate limits in Redis or Valkey, by the module gothrottle or by its script. gothrottle.aio is the same for asyncio.

    limits = gothrottle.connect("redis://127.0.0.1:6379")
    login = limits.rate("login", per_minute=5, burst=3, lockout="15m")
    result = login.allow("bob")
    if not result.allowed:
        ...  # answer 429 with result.headers
"""
from __future__ import annotations

import threading
import time
from typing import Any, Callable, Coroutine

import redis

from . import _limits, _redis
from ._core import Core, Ending, Options, Part, Pause, Port, Shared, ask_all, check, run
from ._errors import FAILURES, Error, NoModuleError, ParamsError, UnavailableError
from ._held import Held, HeldUnits, slot
from ._limits import Span
from ._makers import Makers
from ._result import NEVER, AllResult, Result
from ._wire import Wire

__all__ = ["NEVER", "AllResult", "Error", "Hold", "Lease", "Limiter", "Limits", "NoModuleError", "ParamsError", "Part", "Rate",
           "Result", "Slots", "UnavailableError", "connect"]


class Threads(Port):
    def __init__(self, wire: Wire, make: Callable[[], Any]):
        self.wire, self.now, self._make, self._made = wire, wire.now, make, None

    def client(self) -> Any:
        """Returns the client, and makes it if need be: that of a cluster asks for the nodes."""
        if self._made is None:
            watch = self.wire.watch(None, "")
            watch.admit()
            try:
                self._made = self._make()
            except FAILURES as error:
                raise self.wire.failed(error, watch) from error
            watch.works()
        return self._made

    async def ask(self, words: list[Any], keys: int = 1) -> Any:
        client, call = self.client(), self.wire.words(words, keys)
        watch = self.wire.watch(client, words[1])
        watch.admit()
        try:
            try:
                reply = client.execute_command(*call)
            except redis.exceptions.NoScriptError:
                reply = client.execute_command(*self.wire.text(call))
        except FAILURES as error:
            raise self.wire.failed(error, watch) from error
        watch.works()
        return reply

    async def sleep(self, seconds: float, cancelled: Callable[[], Coroutine[Any, Any, Any]] | None = None) -> None:
        time.sleep(seconds)

    def keep(self, renew: Callable[[Pause], Coroutine[Any, Any, None]]) -> Ending:
        over = threading.Event()

        async def pause(seconds: float) -> bool:
            return over.wait(seconds)

        thread = threading.Thread(target=lambda: run(renew(pause)), name="gothrottle", daemon=True)
        thread.start()

        async def stop() -> None:
            over.set()
            thread.join()

        return stop

    def close(self) -> None:
        client, self._made = self._made, None
        if client is not None:
            client.close()
            if hasattr(client, "connection_pool"):
                client.connection_pool.disconnect()


class Limiter(Core):
    """A window or a quota. Keys are the limiter's name, a colon and the key."""

    def allow(self, key: str, n: int = 1) -> Result:
        """Asks for n units, all or none."""
        return run(self._allow(key, n))

    def peek(self, key: str) -> Result:
        """Tells what is left, and changes nothing."""
        return run(self._peek(key))

    def refund(self, key: str, n: int = 1) -> Result:
        """Gives n units back, but no more than are in use."""
        return run(self._refund(key, n))

    def settle(self, key: str, difference: int) -> Result:
        """Corrects an estimate: charges more, past the limit if need be, or gives a negative difference back. It's sent once:
        after an error it may have settled."""
        return run(self._change(key, difference))

    def reset(self, key: str) -> None:
        """Deletes the key: nothing is in use, and a lockout ends."""
        run(self._reset(key))

    def hold(self, key: str, n: int, ttl: Span = "30s", deadline: Span = "1h") -> Hold:
        """Reserves n units until their cost is known. It's renewed in a with block, until the deadline, and lapses a ttl after
        the last renewal."""
        hold = Hold(self, key, n, _limits.millis(ttl), _limits.millis(deadline) / 1000)
        run(hold._hold())
        return hold

    def part(self, key: str, n: int = 1, share: int = 0) -> Part:
        """A part of all(): n units. With a share, a tenant of the part before it, by this weight."""
        return self._part(key, n, share)


class Rate(Limiter):
    """A limiter that drains at a rate."""

    def wait(self, key: str, n: int = 1, timeout: float = 60) -> Result:
        """Takes a turn and waits for it, or returns a denial at once if it would come after the timeout, in seconds."""
        return run(self._wait(key, n, timeout))


class Slots(Core):
    """A limiter of concurrent holders."""

    def lease(self, key: str, deadline: Span = "100d") -> Lease:
        """Takes a slot. It's renewed in a with block, until the deadline."""
        lease = Lease(self, self._key(key), self._by.first, self._by.period, _limits.millis(deadline) / 1000)
        run(slot(lease))
        return lease

    def reset(self, key: str) -> None:
        """Deletes the key: leases are lost at their next renewal."""
        run(self._reset(key))

    def part(self, key: str, holder: str, share: int = 0) -> Part:
        """A part of all(): a slot, for a holder that nobody renews."""
        return self._part(key, 1, share, holder)


class Lease(Held):
    """A slot. In a with block it's renewed by a thread, and released at the end."""

    def renew(self) -> bool:
        """Renews it now, and returns whether it's still held."""
        return run(self._renew())

    def release(self) -> bool:
        """Gives it back, and returns whether it was held."""
        return run(self._release())

    def __enter__(self) -> Any:
        self._start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()


class Hold(HeldUnits, Lease):
    """Units that are reserved. The end of a with block gives them back, unless they were settled."""

    def settle(self, actual: int) -> str:
        """Charges the real cost, past the limit if need be, and gives back the rest. Returns "counted", "refused" (the hold was
        lost, and the limit is used up), or "unknown" (it may have been charged). It tries again while there's no reply."""
        return run(self._settle(actual))


class Limits(Makers[Rate, Limiter, Slots]):
    """Makes limiters, which are cheap: make one per call where limits differ by user. Threads share them."""

    def __init__(self, shared: Shared, port: Threads):
        super().__init__(shared, Rate, Limiter, Slots)
        self._port = port

    def all(self, *parts: Part) -> AllResult:
        """Takes all parts or none, in one call. In a cluster their keys need one hash tag."""
        return run(ask_all(self._shared, parts))

    def check(self) -> None:
        """Raises a NoModuleError if the server lacks the module, or an UnavailableError. Call it when the program starts."""
        run(check(self._shared))

    def close(self) -> None:
        """Releases what is renewed, and closes all connections."""
        for release in list(self._shared.kept):
            run(release())
        self._port.close()

    def __enter__(self) -> Limits:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def connect(server: Any, *, prefix: str = "", timeout: float = 0.25, script: bool | str = False, fail_open: bool = False,
            fail_closed: bool = False, fail_local: float = 0.0, remember_denials: bool = False, **options: Any) -> Limits:
    """Returns limiters of a server: a URL (redis://, rediss://, unix://, redis+cluster://host,host, redis+sentinel://host,host/name)
    or a client of redis-py, whose address and password are used. It sends nothing yet.

    The timeout, in seconds, is for connecting and for a reply. While the server is unavailable a call raises an
    UnavailableError, or is admitted (fail_open), or denied (fail_closed), or decided by this process with a share of the limit
    (fail_local). script=True is for servers without the module. Other options are redis-py's.
    """
    wire = Wire(script, timeout, time.monotonic)
    make = _redis.connect if isinstance(server, str) else _redis.adopted
    port = Threads(wire, make(redis, server, timeout, options))
    return Limits(Shared(port, prefix, Options(fail_open, fail_closed, fail_local, remember_denials)), port)
