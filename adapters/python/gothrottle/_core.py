"""What the limiters for threads and for asyncio have in common."""
from __future__ import annotations

import dataclasses
import datetime
from typing import Any, Callable, Generic, Sequence, TypeVar

from . import _limits
from ._errors import ParamsError, UnavailableError
from ._limits import AllResult, Limit, Result, Span, read
from ._local import Local
from ._port import Port
from ._redis import maker

R = TypeVar("R")
L = TypeVar("L")
S = TypeVar("S")


@dataclasses.dataclass(frozen=True)
class Options:
    """What decides while the server is unavailable: an error, if none of them is set. Also whether denials are repeated."""

    fail_open: bool = False
    fail_closed: bool = False
    fail_local: float = 0.0  # this process decides by so much of the limit: above 0, at most 1
    remember_denials: bool = False

    def __post_init__(self) -> None:
        if sum(map(bool, (self.fail_open, self.fail_closed, self.fail_local))) > 1 or not 0 <= self.fail_local <= 1:
            raise ParamsError("pass one of fail_open, fail_closed and fail_local, which is a share of the limit, at most 1")


class Makers(Generic[R, L, S]):
    """Makes limiters of a server, which are cheap: make one per call where limits differ by user. The server is a URL (redis://,
    rediss://, unix://, redis+cluster://host,host, redis+sentinel://host,host/name) or a client of redis-py, whose address and
    password are used. Nothing is sent yet.

    The timeout, in seconds, is for connecting and for a reply. While the server is unavailable a call raises an
    UnavailableError, or is admitted (fail_open), or denied (fail_closed), or decided by this process with a share of the limit
    (fail_local). script=True is for servers without the module. Other options are redis-py's.
    """

    _library: Any  # redis or redis.asyncio
    _ports: type[Port]
    _kinds: tuple[Callable[..., R], Callable[..., L], Callable[..., S]]

    def __init__(self, server: Any, *, prefix: str = "", timeout: float = 0.25, script: bool | str = False, fail_open: bool = False,
                 fail_closed: bool = False, fail_local: float = 0.0, remember_denials: bool = False, **options: Any):
        self._options = Options(fail_open, fail_closed, fail_local, remember_denials)
        self._port = self._ports(maker(self._library, server, timeout, options), timeout, script)
        self._prefix, self._local = prefix, Local()
        self._denials: dict[str, tuple[Limit, int, float, Result]] = {}  # by key: of which limit and units, when it ends, what it said
        self._kept: set[Any] = set()  # what is renewed

    def rate(self, name: str, *, per_second: int | None = None, per_minute: int | None = None, per_hour: int | None = None,
             per: tuple[int, Span] | None = None, burst: int | None = None, lockout: Span | None = None, **options: Any) -> R:
        """So many units drain per second, minute, hour, or per=(count, period). As many fit at once, unless burst says
        otherwise. A denial begins the lockout. The options are those of connect that decide during an outage."""
        return self._kinds[0](self, name, _limits.rate(per, per_second, per_minute, per_hour, burst, lockout), options)

    def window(self, name: str, limit: int, period: Span, *, exact: bool = False, **options: Any) -> L:
        """Never more than limit in any period."""
        return self._kinds[1](self, name, Limit("WINDOW", _limits.units(limit), _limits.millis(period), exact=exact), options)

    def quota(self, name: str, limit: int, period: Span, *, zone: str | datetime.tzinfo | None = None, **options: Any) -> L:
        """So many per period, from the first unit on. With a zone, like "Europe/Berlin" or "UTC", its clocks end a period, and
        the period "1mo" is a calendar month."""
        return self._kinds[1](self, name, _limits.quota(limit, period, zone), options)

    def slots(self, name: str, limit: int, ttl: Span, **options: Any) -> S:
        """So many holders at a time. A slot that isn't renewed lapses after the ttl."""
        return self._kinds[2](self, name, Limit("LEASE", _limits.units(limit), _limits.millis(ttl)), options)


AnyMakers = Makers[Any, Any, Any]


class Core:
    """A limiter: a limit of a name."""

    def __init__(self, all: AnyMakers, name: str, limit: Limit, options: dict[str, Any]):
        if not name or not isinstance(name, str):
            raise ParamsError("a limiter needs a name")
        self._all, self._name, self._by, self._port = all, name, limit, all._port
        base = all._options if not any(one.startswith("fail_") for one in options) else Options(
            remember_denials=all._options.remember_denials)
        self._options = dataclasses.replace(base, **options)
        self._of = name, limit

    def _key(self, key: str) -> str:
        if not isinstance(key, str) or len(key) == 0:
            raise ParamsError(f"{key!r} is not a key: a text that isn't empty")
        return f"{self._all._prefix}{self._name}:{key}"

    async def _ask(self, key: str, n: int, mode: str = "", only: str = "") -> Result:
        by = self._by
        more: list[Any] = [mode] if mode else ["LOCKOUT", by.lockout] if by.lockout and n > 0 else []
        return read(await self._port.ask([f"GO.{by.kind}{only}", key, *by.first, n, *more, *by.last, "MS"]), n, mode, self._of)


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of all() or hold(): units of a key, or a slot. 0 looks, a negative number gives back."""

    _limiter: Core
    _key: str
    _n: int
    _share: int = 0
    _holder: str = ""

    def __post_init__(self) -> None:
        if self._share and not 1 <= self._share <= 1000:
            raise ParamsError("a share's weight is 1 to 1000")

    def _words(self, n: int | None = None) -> list[Any]:
        """Returns the words of a clause after its key, by default for the part's units."""
        by = self._limiter._by
        words = [by.kind, *by.first, self._holder or self._n if n is None else n]
        if by.lockout and n is None:
            words += ["LOCKOUT", by.lockout]
        return words + by.last + (["SHARE", self._share] if self._share else [])

    def _here(self, options: Options, cause: UnavailableError, commit: bool) -> Result:
        limiter, by, n = self._limiter, self._limiter._by, max(self._n, 0)
        if options.fail_local:
            now = int(limiter._port.now() * 1e6)
            found = limiter._all._local.take(limiter._name, by.part(options.fail_local), self._key, n, now, self._holder, commit)
            return dataclasses.replace(found, cause=cause)
        allowed = options.fail_open
        return Result(allowed, by.units, retry_after=0 if allowed else 1, granted=n if allowed else 0,
                      source="failed-open" if allowed else "failed-closed", cause=cause, of=limiter._of)


def failed(options: Options, parts: Sequence[Part], cause: UnavailableError) -> AllResult:
    """Decides without the server, or raises the cause."""
    if not (options.fail_local or options.fail_open or options.fail_closed):
        raise cause
    each: tuple[Result, ...] = ()
    for commit in [True] if len(parts) == 1 else [False, True]:  # of several parts, it looks first
        if all(one.allowed for one in each):
            each = tuple(part._here(options, cause, commit) for part in parts)
    return decided(each, max(range(len(each)), key=lambda i: (not each[i].allowed, each[i].retry_after, -each[i].remaining)))


def decided(each: tuple[Result, ...], decider: int) -> AllResult:
    return AllResult(**vars(each[decider]), decider=decider, each=each)


def joined(clauses: Sequence[Sequence[Any]], *last: Any) -> tuple[list[Any], list[str]]:
    """Returns the words of GO.ALL for clauses that begin with their keys, and the keys after the first."""
    first, *more = clauses
    return ["GO.ALL", *first, *(word for clause in more for word in ("KEY", *clause)), *last, "MS"], [clause[0] for clause in more]
