"""gothrottle for asyncio. Concurrent calls for one key become one command, with the same decisions.

    limits = gothrottle.aio.connect("redis://127.0.0.1:6379")
    result = await limits.rate("login", per_minute=5).allow("bob")
"""
from __future__ import annotations

import time
from typing import Any, Callable, Coroutine, Generator, Generic, TypeVar

import redis.asyncio

from . import _limits, _redis
from ._core import Core, Options, Part, Shared, ask_all, check
from ._held import Held, HeldUnits, slot
from ._limits import Span
from ._loop import Tasks
from ._makers import Makers
from ._result import AllResult, Result
from ._wire import Wire

__all__ = ["Hold", "Lease", "Limiter", "Limits", "Rate", "Slots", "connect"]


class Limiter(Core):
    """See gothrottle.Limiter."""

    async def allow(self, key: str, n: int = 1) -> Result:
        """Asks for n units, all or none."""
        return await self._allow(key, n)

    async def peek(self, key: str) -> Result:
        """Tells what is left, and changes nothing."""
        return await self._peek(key)

    async def refund(self, key: str, n: int = 1) -> Result:
        """Gives n units back, but no more than are in use."""
        return await self._refund(key, n)

    async def settle(self, key: str, difference: int) -> Result:
        """Corrects an estimate: see gothrottle.Limiter.settle."""
        return await self._change(key, difference)

    async def reset(self, key: str) -> None:
        """Deletes the key: nothing is in use, and a lockout ends."""
        await self._reset(key)

    def hold(self, key: str, n: int, ttl: Span = "30s", deadline: Span = "1h") -> Taking[Hold]:
        """Reserves n units, for await or async with: see gothrottle.Limiter.hold."""
        hold = Hold(self, key, n, _limits.millis(ttl), _limits.millis(deadline) / 1000)
        return Taking(hold, hold._hold)

    def part(self, key: str, n: int = 1, share: int = 0) -> Part:
        """A part of all(): see gothrottle.Limiter.part."""
        return self._part(key, n, share)


class Rate(Limiter):
    """See gothrottle.Rate."""

    async def wait(self, key: str, n: int = 1, timeout: float = 60) -> Result:
        """Takes a turn and waits for it, or returns a denial at once if it would come after the timeout, in seconds. If the
        caller is cancelled meanwhile, the turn is given back."""
        return await self._wait(key, n, timeout)


class Slots(Core):
    """See gothrottle.Slots."""

    def lease(self, key: str, deadline: Span = "100d") -> Taking[Lease]:
        """Takes a slot, for await or async with: see gothrottle.Slots.lease."""
        lease = Lease(self, self._key(key), self._by.first, self._by.period, _limits.millis(deadline) / 1000)
        return Taking(lease, lambda: slot(lease))

    async def reset(self, key: str) -> None:
        """Deletes the key: leases are lost at their next renewal."""
        await self._reset(key)

    def part(self, key: str, holder: str, share: int = 0) -> Part:
        """A part of all(): see gothrottle.Slots.part."""
        return self._part(key, 1, share, holder)


class Lease(Held):
    """A slot. In an async with block a task renews it, and it's released at the end."""

    async def renew(self) -> bool:
        """Renews it now, and returns whether it's still held."""
        return await self._renew()

    async def release(self) -> bool:
        """Gives it back, and returns whether it was held."""
        return await self._release()

    async def __aenter__(self) -> Any:
        self._start()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self._release()


class Hold(HeldUnits, Lease):
    """Units that are reserved: see gothrottle.Hold."""

    async def settle(self, actual: int) -> str:
        """Charges the real cost: see gothrottle.Hold.settle."""
        return await self._settle(actual)


H = TypeVar("H", bound=Lease)


class Taking(Generic[H]):
    """A lease or a hold that await takes; async with also renews it and gives it back."""

    def __init__(self, held: H, take: Callable[[], Coroutine[Any, Any, None]]):
        self._held, self._take = held, take

    def __await__(self) -> Generator[Any, Any, H]:
        yield from self._take().__await__()
        return self._held

    async def __aenter__(self) -> H:
        await self._take()
        await self._held.__aenter__()
        return self._held

    async def __aexit__(self, *error: Any) -> None:
        await self._held.__aexit__(*error)


class Limits(Makers[Rate, Limiter, Slots]):
    """Makes limiters: see gothrottle.Limits. Each event loop gets its own connections."""

    def __init__(self, shared: Shared, port: Tasks):
        super().__init__(shared, Rate, Limiter, Slots)
        self._port = port

    async def all(self, *parts: Part) -> AllResult:
        """Takes all parts or none, in one call. In a cluster their keys need one hash tag."""
        return await ask_all(self._shared, parts)

    async def check(self) -> None:
        """Raises an error unless the server decides: see gothrottle.Limits.check."""
        await check(self._shared)

    async def close(self) -> None:
        """Releases what is renewed, and closes the connections of this event loop."""
        for release in list(self._shared.kept):
            await release()
        await self._port.close()

    async def __aenter__(self) -> Limits:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()


def connect(server: Any, *, prefix: str = "", timeout: float = 0.25, script: bool | str = False, fail_open: bool = False,
            fail_closed: bool = False, fail_local: float = 0.0, remember_denials: bool = False, **options: Any) -> Limits:
    """Returns limiters of a server: a URL, or a client of redis.asyncio. See gothrottle.connect; a call ends within the timeout."""
    make = _redis.connect if isinstance(server, str) else _redis.adopted
    port = Tasks(Wire(script, timeout, time.monotonic), lambda: make(redis.asyncio, server, timeout, options))
    return Limits(Shared(port, prefix, Options(fail_open, fail_closed, fail_local, remember_denials)), port)
