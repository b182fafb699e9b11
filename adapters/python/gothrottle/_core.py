"""The verbs of all limiters, once for threads and for asyncio: a Port sends and waits. For threads its coroutines never
suspend, so run() needs no event loop."""
from __future__ import annotations

import dataclasses
import math
from typing import Any, Awaitable, Callable, Coroutine, TypeVar

from . import _limits
from ._errors import ParamsError, UnavailableError
from ._limits import Limit, Span
from ._local import Local
from ._result import NEVER, AllResult, Result, read

T = TypeVar("T")
Pause = Callable[[float], Awaitable[bool]]
Ending = Callable[[], Coroutine[Any, Any, None]]
DENIALS = 10_000  # that are remembered


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("a call waits")


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


class Port:
    """What sends calls and waits: of threads or of asyncio."""

    now: Callable[[], float]

    async def ask(self, words: list[Any], keys: int = 1) -> Any:
        """Sends a call once, and returns its reply or raises an Error."""
        raise NotImplementedError

    async def merge(self, spot: tuple[str, Limit], ask: Callable[[int], Awaitable[Result]]) -> Result:
        """Asks for one unit, or for those of several callers."""
        return await ask(1)

    async def sleep(self, seconds: float, cancelled: Callable[[], Coroutine[Any, Any, Any]] | None = None) -> None:
        """Waits. If the caller is cancelled meanwhile, calls what is given."""
        raise NotImplementedError

    def keep(self, renew: Callable[[Pause], Coroutine[Any, Any, None]]) -> Ending:
        """Lets renew run in the background, and returns what ends it. Its pause waits for so many seconds, or for the end, and
        then returns True."""
        raise NotImplementedError


class Shared:
    """What the limiters of one client share."""

    def __init__(self, port: Port, prefix: str, options: Options):
        self.port, self.prefix, self.options = port, prefix, options
        self.local = Local()
        self.denials: dict[tuple[str, Limit], tuple[int, float, Result]] = {}  # units, when it ends, what was said
        self.kept: set[Callable[[], Coroutine[Any, Any, bool]]] = set()  # what releases what is renewed


class Core:
    """A limiter: a limit of a name."""

    def __init__(self, shared: Shared, name: str, limit: Limit, options: dict[str, Any]):
        if not name or not isinstance(name, str):
            raise ParamsError("a limiter needs a name")
        self._all, self._name, self._by, self._port = shared, name, limit, shared.port
        base = shared.options if not any(one.startswith("fail_") for one in options) else Options(
            remember_denials=shared.options.remember_denials)
        self._options = dataclasses.replace(base, **options)
        self._of = name, limit

    def _key(self, key: str) -> str:
        if not isinstance(key, str) or len(key) == 0:
            raise ParamsError(f"{key!r} is not a key: a text that isn't empty")
        return f"{self._all.prefix}{self._name}:{key}"

    async def _ask(self, key: str, n: int, mode: str = "", *more: Any) -> Result:
        by = self._by
        words = [f"GO.{by.kind}", key, *by.first, n]
        if mode:
            words += [mode, *more]
        elif by.lockout and n > 0:
            words += ["LOCKOUT", by.lockout]
        return read(await self._port.ask([*words, *by.last, "MS"]), n, mode, self._of)

    async def _allow(self, key: str, n: int) -> Result:
        key, by, sent = self._key(key), self._by, self._port.now()
        _limits.units(n)
        if self._options.remember_denials and (denied := self._denied(key, n, sent)):
            return denied
        try:
            if n == 1 and by.merges:
                result = await self._port.merge((key, by), lambda callers: self._ask(key, callers, "UPTO" if callers > 1 else ""))
            else:
                result = await self._ask(key, n)
        except UnavailableError as cause:
            return self._failed(key, n, cause)
        if self._options.remember_denials and not result.allowed and result.retry_after < NEVER:
            if len(self._all.denials) >= DENIALS:
                self._all.denials.clear()
            self._all.denials[key, by] = n, sent + result.retry_after, result
        return result

    def _denied(self, key: str, n: int, now: float) -> Result | None:
        """Returns the last denial if it still holds. It counts from when the call was sent: never longer than on the server."""
        units, end, result = self._all.denials.get((key, self._by), (0, 0.0, None))
        if result is None or units != n or now >= end:
            return None
        past = result.retry_after - (end - now)
        return dataclasses.replace(result, source="denials", retry_after=round(end - now, 3) or 0.001,
                                   reset_after=max(0.0, round(result.reset_after - past, 3)))

    def _failed(self, key: str, n: int, cause: UnavailableError, holder: str = "") -> Result:
        """Decides, or raises the cause."""
        o, by = self._options, self._by
        if o.fail_local:
            result = self._all.local.take(self._name, by.part(o.fail_local), key, n, int(self._port.now() * 1e6), holder)
            return dataclasses.replace(result, cause=cause)
        if o.fail_open:
            return Result(True, by.units, granted=n, source="failed-open", cause=cause, of=self._of)
        if o.fail_closed:
            return Result(False, by.units, retry_after=1, source="failed-closed", cause=cause, of=self._of)
        raise cause

    async def _peek(self, key: str) -> Result:
        key, by = self._key(key), self._by
        result = read(await self._port.ask([f"GO.{by.kind}_RO", key, *by.first, 0, *by.last, "MS"]), 0, "", self._of)
        return dataclasses.replace(result, allowed=result.allowed and result.remaining > 0)

    async def _refund(self, key: str, n: int) -> Result:
        return await self._change(key, -_limits.units(n))

    async def _change(self, key: str, difference: int) -> Result:
        key = self._key(key)
        _limits.units(abs(difference), 0)
        for denied in [one for one in self._all.denials if one[0] == key]:
            self._all.denials.pop(denied, None)
        return await self._ask(key, difference, "UPTO" if difference < 0 else "FORCE")

    async def _reset(self, key: str) -> None:
        key = self._key(key)
        await self._port.ask(["DEL", key])
        for denied in [one for one in self._all.denials if one[0] == key]:
            self._all.denials.pop(denied, None)

    async def _wait(self, key: str, n: int, timeout: float) -> Result:
        """Takes a turn that comes within the timeout, and waits for it."""
        key, began = self._key(key), self._port.now()
        _limits.units(n)
        if self._by.lockout:
            raise ParamsError("wait doesn't work with a lockout")
        most = min(max(0, math.floor(timeout * 1000)), _limits.LONGEST)
        try:
            reply = await self._port.ask(["GO.THROTTLE", key, *self._by.first, n, "RESERVE", most, "MS"])
        except UnavailableError as cause:
            return self._failed(key, n, cause)
        result = read(reply, n, "RESERVE", self._of)
        if result.allowed and reply[5] > 0:
            if self._port.now() - began + reply[5] / 1000 > timeout:  # the reply took part of the time
                await self._ask(key, -n, "UPTO")
                return dataclasses.replace(result, allowed=False, granted=0, retry_after=reply[5] / 1000)
            await self._port.sleep(reply[5] / 1000, lambda: self._ask(key, -n, "UPTO"))
        return result

    def _part(self, key: str, n: int, share: int, holder: str = "") -> Part:
        if share and not 1 <= share <= 1000:
            raise ParamsError("a share's weight is 1 to 1000")
        return Part(self, self._key(key), n, share, holder)


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of all(): units of a key, or a slot. 0 looks, a negative number gives back."""

    _limiter: Core
    _key: str
    _n: int
    _share: int
    _holder: str

    def _words(self) -> list[Any]:
        by = self._limiter._by
        words = [self._key, by.kind, *by.first, self._holder or self._n]
        if by.lockout:
            words += ["LOCKOUT", by.lockout]
        return words + by.last + (["SHARE", self._share] if self._share else [])


async def check(shared: Shared) -> None:
    """Raises an error unless the server decides, by the module or by the script."""
    await shared.port.ask(["GO.THROTTLE_RO", shared.prefix + "check", 0, 1, 1])


async def ask_all(shared: Shared, parts: tuple[Part, ...]) -> AllResult:
    """Takes all parts or none."""
    if not parts or parts[0]._share:
        raise ParamsError("all needs a part, and a share needs one before it")
    words: list[Any] = ["GO.ALL", *parts[0]._words()]
    for part in parts[1:]:
        words += ["KEY", *part._words()]
    try:
        reply = await shared.port.ask([*words, "MS"], len(parts))
    except UnavailableError as cause:
        return _all_failed(shared, parts, cause)
    each = tuple(read(one, part._n, "", part._limiter._of) for one, part in zip(reply[6:], parts))
    if reply[0]:
        each = tuple(dataclasses.replace(one, granted=0) for one in each)
    return _decided(each, reply[5])


def _decided(each: tuple[Result, ...], decider: int) -> AllResult:
    by = each[decider]
    return AllResult(**{f.name: getattr(by, f.name) for f in dataclasses.fields(Result)}, decider=decider, each=each)


def _all_failed(shared: Shared, parts: tuple[Part, ...], cause: UnavailableError) -> AllResult:
    if not shared.options.fail_local:
        return _decided(tuple(Core(shared, p._limiter._name, p._limiter._by, {})._failed(p._key, max(p._n, 0), cause) for p in parts), 0)
    now, share, commit = int(shared.port.now() * 1e6), shared.options.fail_local, False
    for _ in range(2):  # looks first
        each = tuple(dataclasses.replace(shared.local.take(
            p._limiter._name, p._limiter._by.part(share), p._key, max(p._n, 0), now, p._holder, commit), cause=cause) for p in parts)
        commit = all(one.allowed for one in each)
        if not commit:
            break
    return _decided(each, max(range(len(each)), key=lambda i: (not each[i].allowed, each[i].retry_after, -each[i].remaining)))
