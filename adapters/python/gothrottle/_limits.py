"""What limiters admit, as the words of their commands, and decisions."""
from __future__ import annotations

import dataclasses
import datetime
import math
import re
import zoneinfo
from typing import Any, Union

from ._errors import ParamsError, UnavailableError

Span = Union[str, float, datetime.timedelta]  # "250ms", "30s", "15m", "1h", "1d"; seconds; or a timedelta
MILLIS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
NEVER = math.inf
LONGEST = 100 * 365 * MILLIS["d"]


def millis(span: Span) -> int:
    """Returns a length of time in ms: a whole number, 1 ms to 100 years."""
    if isinstance(span, datetime.timedelta):
        span = span.total_seconds()
    if isinstance(span, str):
        parts = re.fullmatch(r"(\d{1,13})(ms|[smhd])", span, re.ASCII)
        ms = float(int(parts[1]) * MILLIS[parts[2]]) if parts else 0.0
    else:
        ms = span * 1000
    if not 1 <= ms <= LONGEST or abs(ms - round(ms)) > 1e-6:
        raise ParamsError(f"{span!r} is not a time: a whole number of ms up to 100 years, like '250ms', '15m' or 0.5 seconds")
    return round(ms)


def units(n: int, least: int = 1) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or not least <= n <= 10**12:
        raise ParamsError(f"{n!r} is not a number of units: {least} to 10**12")
    return n


@dataclasses.dataclass(frozen=True)
class Limit:
    """How much a limiter admits. The kind is the word of its clauses."""

    kind: str  # THROTTLE, WINDOW, QUOTA, LEASE
    units: int  # that fit at once
    period: int  # in ms; of a month, 31 days
    count: int = 0  # of a rate: units that drain per period
    lockout: int = 0  # in ms; 0: none
    exact: bool = False
    monthly: bool = False
    zone: datetime.tzinfo | None = None  # by whose clocks the windows of a quota end

    @property
    def merges(self) -> bool:
        """Whether one call can ask for several callers: a lockout and a slot would get another reply."""
        return self.kind != "LEASE" and not self.lockout

    @property
    def first(self) -> list[str | int]:
        """The words between the key and the quantity."""
        period: str | int = "1mo" if self.monthly else self.period
        return [self.units - 1, self.count, period] if self.kind == "THROTTLE" else [self.units, period]

    @property
    def last(self) -> list[str | int]:
        """The words after the quantity and its mode, but for MS."""
        if self.zone is None:
            return ["EXACT"] if self.exact else []
        shift = datetime.datetime.now(self.zone).strftime("%z")
        return ["ALIGN", f"{shift[:3]}:{shift[3:5]}"]

    def part(self, share: float) -> Limit:
        """Returns a share of the limit: fewer units, or one unit in a longer period. That makes a rate exact."""
        n, slower = self.units * share, 1.0
        if self.kind == "THROTTLE" or n < 1:
            slower = 1 / share if self.kind == "THROTTLE" else 1 / n
        period = min(round(self.period * slower), LONGEST)
        return dataclasses.replace(self, units=max(int(n), 1), period=period, monthly=self.monthly and slower == 1)


def rate(per: tuple[int, Span] | None, per_second: int | None, per_minute: int | None, per_hour: int | None,
         burst: int | None, lockout: Span | None) -> Limit:
    given = [one for one in (per, per_second and (per_second, "1s"), per_minute and (per_minute, "1m"), per_hour and (per_hour, "1h"))
             if one is not None]
    if len(given) != 1 or not given[0]:
        raise ParamsError("a rate needs one of per_second, per_minute, per_hour, and per=(count, period)")
    count, period = given[0]
    size = units(count if burst is None else burst)
    limit = Limit("THROTTLE", size, millis(period), count=units(count), lockout=millis(lockout) if lockout is not None else 0)
    if limit.units * limit.period > LONGEST * limit.count:
        raise ParamsError("a burst must drain within 100 years")
    return limit


def quota(limit: int, period: Span, zone: str | datetime.tzinfo | None) -> Limit:
    """A month needs a zone: UTC, if none is given."""
    monthly = period == "1mo"
    if monthly and zone is None:
        zone = datetime.timezone.utc
    if isinstance(zone, str):
        try:
            zone = datetime.timezone.utc if zone == "UTC" else zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
            raise ParamsError(str(error)) from None
    return Limit("QUOTA", units(limit), 31 * MILLIS["d"] if monthly else millis(period), monthly=monthly, zone=zone)


@dataclasses.dataclass(frozen=True)
class Result:
    """A decision. A denial isn't an error. Times are in seconds, to the millisecond."""

    allowed: bool
    limit: int = 0  # units that fit at once
    remaining: int = 0  # whole units left, 0 to limit
    retry_after: float = 0  # until the same call is admitted, or NEVER; 0 if it was
    reset_after: float = 0  # until nothing is in use
    granted: int = 0  # units taken; negative: units given back
    source: str = "server"  # or "denials", "failed-open", "failed-closed", "failed-local"
    cause: Exception | None = None  # why the server didn't decide
    of: tuple[str, Limit] | None = dataclasses.field(default=None, repr=False, compare=False)  # the limiter's name, and limit

    @property
    def retry_after_seconds(self) -> int:
        """For the header Retry-After: whole seconds, rounded up, at least 1 after a denial. 0: set no header."""
        if self.allowed or self.retry_after == NEVER:
            return 0
        return max(1, math.ceil(self.retry_after))

    @property
    def status(self) -> int:
        """For a response: 200, 429, or 503 if nobody could decide."""
        return 200 if self.allowed else 503 if self.source == "failed-closed" else 429

    @property
    def headers(self) -> dict[str, str]:
        """RateLimit and RateLimit-Policy by the draft of the IETF, and Retry-After after a denial."""
        found = {"Retry-After": str(self.retry_after_seconds)} if self.retry_after_seconds else {}
        if self.of is None or self.source in ("failed-open", "failed-closed"):
            return found  # nothing is known of the limiter
        name, by = self.of
        drain = by.period * by.units / by.count / 1000 if by.count else by.period / 1000  # of a full limiter
        more = self.retry_after if 0 < self.retry_after < NEVER else min(drain / by.units if by.count else drain, self.reset_after)
        item = f";t={math.ceil(round(more, 6))}" if more > 0 else ""
        return {"RateLimit-Policy": f'"{name}";q={self.limit};w={math.ceil(drain)}',
                "RateLimit": f'"{name}";r={self.remaining}{item}', **found}

    def shared(self, callers: int) -> list[Result]:
        """Returns what each caller gets of a call for several: units are granted first come, first served."""
        admitted = dataclasses.replace(self, allowed=True, granted=1, retry_after=0)
        denied = dataclasses.replace(self, allowed=False, granted=0)
        return [admitted if place < self.granted else denied for place in range(callers)]


@dataclasses.dataclass(frozen=True)
class AllResult(Result):
    """The decision of several parts: that of the part which decided. If it denies, nothing was taken."""

    decider: int = 0  # the index of the part
    each: tuple[Result, ...] = ()  # the parts' own


def read(reply: Any, n: int, mode: str, of: tuple[str, Limit]) -> Result:
    """Reads the integers of a reply to a call for n units."""
    integers = [int(i) for i in reply[:6] if not isinstance(i, list)] if isinstance(reply, list) else []
    if len(integers) < 5 or mode in ("UPTO", "RESERVE", "ALL") and len(integers) < 6:
        raise UnavailableError(f"a reply that this client doesn't know: {reply!r}")
    limited, limit, remaining, retry, reset = integers[:5]
    granted = integers[5] if mode == "UPTO" else 0 if limited else n
    wait = retry / 1000 if retry >= 0 else NEVER if limited else 0
    return Result(not limited, limit, remaining, wait, reset / 1000, granted, of=of)
