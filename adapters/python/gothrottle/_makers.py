"""Makes limiters, of the classes for threads or for asyncio."""
from __future__ import annotations

import datetime
from typing import Any, Callable, Generic, TypeVar

from . import _limits
from ._core import Shared
from ._limits import Limit, Span

R = TypeVar("R")
L = TypeVar("L")
S = TypeVar("S")


class Makers(Generic[R, L, S]):
    def __init__(self, shared: Shared, rate: Callable[..., R], limiter: Callable[..., L], slots: Callable[..., S]):
        self._shared, self._rate, self._limiter, self._slots = shared, rate, limiter, slots

    def rate(self, name: str, *, per_second: int | None = None, per_minute: int | None = None, per_hour: int | None = None,
             per: tuple[int, Span] | None = None, burst: int | None = None, lockout: Span | None = None, **options: Any) -> R:
        """So many units drain per second, minute, hour, or per=(count, period). As many fit at once, unless burst says
        otherwise. A denial begins the lockout. The options are those of connect that decide during an outage."""
        return self._rate(self._shared, name, _limits.rate(per, per_second, per_minute, per_hour, burst, lockout), options)

    def window(self, name: str, limit: int, period: Span, *, exact: bool = False, **options: Any) -> L:
        """Never more than limit in any period."""
        return self._limiter(self._shared, name, Limit("WINDOW", _limits.units(limit), _limits.millis(period), exact=exact), options)

    def quota(self, name: str, limit: int, period: Span, *, zone: str | datetime.tzinfo | None = None, **options: Any) -> L:
        """So many per period, from the first unit on. With a zone, like "Europe/Berlin" or "UTC", its clocks end a period, and
        the period "1mo" is a calendar month."""
        return self._limiter(self._shared, name, _limits.quota(limit, period, zone), options)

    def slots(self, name: str, limit: int, ttl: Span, **options: Any) -> S:
        """So many holders at a time. A slot that isn't renewed lapses after the ttl."""
        return self._slots(self._shared, name, Limit("LEASE", _limits.units(limit), _limits.millis(ttl)), options)
