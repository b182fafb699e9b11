"""Decisions."""
from __future__ import annotations

import dataclasses
import math
from typing import Any

from ._errors import UnavailableError
from ._limits import Limit

NEVER = math.inf


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
    if len(integers) < 5 or mode in ("UPTO", "RESERVE") and len(integers) < 6:
        raise UnavailableError(f"a reply that this client doesn't know: {reply!r}")
    limited, limit, remaining, retry, reset = integers[:5]
    granted = integers[5] if mode == "UPTO" else 0 if limited else n
    wait = retry / 1000 if retry >= 0 else NEVER if limited else 0
    return Result(not limited, limit, remaining, wait, reset / 1000, granted, of=of)
