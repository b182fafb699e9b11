"""What limiters admit, as the words of their commands."""
from __future__ import annotations

import dataclasses
import datetime
import re
import zoneinfo
from typing import Union

from ._errors import ParamsError

Span = Union[str, float, datetime.timedelta]  # "250ms", "30s", "15m", "1h", "1d"; seconds; or a timedelta
MILLIS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
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
