"""Rate limits in Redis or Valkey, by the module gothrottle or by its script. gothrottle.aio is the same for asyncio.

    limits = gothrottle.connect("redis://127.0.0.1:6379")
    login = limits.rate("login", per_minute=5, burst=3, lockout="15m")
    result = login.allow("bob")
    if not result.allowed:
        ...  # answer 429 with result.headers
"""
from __future__ import annotations

from typing import Any, TypeVar

import redis

from . import _held, aio
from ._core import Core, Makers, Part
from ._errors import Error, NoModuleError, ParamsError, UnavailableError
from ._held import Held, HeldUnits
from ._limits import NEVER, AllResult, Result, Span
from ._port import Port, run, sync

__all__ = ["NEVER", "AllResult", "Error", "Hold", "Lease", "Limiter", "Limits", "NoModuleError", "ParamsError", "Part", "Rate",
           "Result", "Slots", "UnavailableError", "connect"]


H = TypeVar("H", bound=Held)


def taken(held: H) -> H:
    run(held._begin())
    return held


class Limiter(Core):
    __doc__ = aio.Limiter.__doc__

    allow = sync(aio.Limiter.allow)
    peek = sync(aio.Limiter.peek)
    refund = sync(aio.Limiter.refund)
    settle = sync(aio.Limiter.settle)
    reset = sync(aio.Limiter.reset)
    part = aio.Limiter.part

    def hold(self, key: str, n: int, ttl: Span = "30s", deadline: Span = "1h") -> Hold:
        """Reserves n units until their cost is known. A with block renews them until the deadline. They lapse a ttl after the
        last renewal."""
        return taken(Hold([self.part(key, n)], ttl, deadline))


class Rate(Limiter):
    __doc__ = aio.Rate.__doc__

    wait = sync(aio.Rate.wait)


class Slots(Core):
    __doc__ = aio.Slots.__doc__

    reset = sync(aio.Limiter.reset)
    part = aio.Slots.part

    def lease(self, key: str, deadline: Span = "100d") -> Lease:
        """Takes a slot. A with block renews it until the deadline."""
        return taken(Lease([Part(self, self._key(key), 1)], self._by.period, deadline))


class Lease(Held):
    __doc__ = aio.Lease.__doc__

    renew = sync(_held.renew)
    release = sync(_held.release)

    def __enter__(self: H) -> H:
        self._start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()


class Hold(HeldUnits, Lease):
    __doc__ = aio.Hold.__doc__

    settle = sync(_held.settle)


class Limits(Makers[Rate, Limiter, Slots]):
    __doc__ = f"{Makers.__doc__}\n    Threads share limits."
    _library, _ports, _kinds = redis, Port, (Rate, Limiter, Slots)

    all = sync(aio.Limits.all)
    check = sync(aio.Limits.check)
    close = sync(aio.Limits.close)

    def hold(self, *parts: Part, ttl: Span = "30s", deadline: Span = "1h") -> Hold:
        """Reserves the units of all parts or none, and settles each: see Limiter.hold. In a cluster their keys need one hash tag."""
        return taken(Hold(parts, ttl, deadline))

    def resume(self, ticket: str, *parts: Part, ttl: Span = "30s") -> Hold:
        """Returns the hold of a ticket, to end it in this process: with its parts, whatever their units."""
        return _held.resumed(Hold(parts, ttl, least=0), ticket)

    def __enter__(self) -> Limits:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


connect = Limits
