"""gothrottle for asyncio. Concurrent calls for one key become one command, with the same decisions.

    limits = gothrottle.aio.connect("redis://127.0.0.1:6379")
    result = await limits.rate("login", per_minute=5).allow("bob")
"""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
from typing import Any, Generator, Generic, TypeVar

import redis.asyncio

from . import _held, _limits
from ._core import AnyMakers, Core, Makers, Part, decided, failed, joined
from ._errors import Error, ParamsError, UnavailableError
from ._held import Held, HeldUnits
from ._limits import NEVER, AllResult, Result, Span, read
from ._loop import Tasks

__all__ = ["Hold", "Lease", "Limiter", "Limits", "Rate", "Slots", "connect"]

DENIALS = 10_000  # that are remembered


class Limiter(Core):
    """A window or a quota. Keys are the limiter's name, a colon and the key."""

    async def allow(self: Core, key: str, n: int = 1) -> Result:
        """Asks for n units, all or none."""
        key, by, sent, denials = self._key(key), self._by, self._port.now(), self._all._denials
        _limits.units(n)
        if self._options.remember_denials and key in denials:
            limit, units, end, result = denials[key]
            if (limit, units) == (by, n) and sent < end:
                left = round(end - sent, 3) or 0.001
                reset = max(0.0, round(result.reset_after - (result.retry_after - (end - sent)), 3))
                return dataclasses.replace(result, source="denials", retry_after=left, reset_after=reset)
        try:
            if n == 1 and by.merges:
                result = await self._port.merge((key, by), lambda callers: self._ask(key, callers, "UPTO" if callers > 1 else ""))
            else:
                result = await self._ask(key, n)
        except UnavailableError as cause:
            return failed(self._options, [Part(self, key, n)], cause).each[0]
        if self._options.remember_denials and not result.allowed and result.retry_after < NEVER:
            if len(denials) >= DENIALS:
                denials.clear()
            denials[key] = by, n, sent + result.retry_after, result  # from when it was sent: never longer than on the server
        return result

    async def peek(self: Core, key: str) -> Result:
        """Tells what is left, and changes nothing."""
        result = await self._ask(self._key(key), 0, only="_RO")
        return dataclasses.replace(result, allowed=result.allowed and result.remaining > 0)

    async def refund(self: Core, key: str, n: int = 1) -> Result:
        """Gives n units back, but no more than are in use."""
        return await Limiter.settle(self, key, -_limits.units(n))

    async def settle(self: Core, key: str, difference: int) -> Result:
        """Corrects an estimate: charges more, past the limit if need be, or gives a negative difference back. It's sent once:
        after an error it may have settled."""
        key = self._key(key)
        _limits.units(abs(difference), 0)
        self._all._denials.pop(key, None)
        return await self._ask(key, difference, "UPTO" if difference < 0 else "FORCE")

    async def reset(self: Core, key: str) -> None:
        """Deletes the key: nothing is in use, a lockout ends, and leases are lost at their next renewal."""
        key = self._key(key)
        await self._port.ask(["DEL", key])
        self._all._denials.pop(key, None)

    def part(self: Core, key: str, n: int = 1, share: int = 0) -> Part:
        """A part of all() or hold(): n units. With a share, a tenant of the part before it, by this weight."""
        return Part(self, self._key(key), n, share)

    def hold(self, key: str, n: int, ttl: Span = "30s", deadline: Span = "1h") -> Taking[Hold]:
        """Reserves n units until their cost is known, for await or async with, which renews them until the deadline. They lapse
        a ttl after the last renewal."""
        return Taking(Hold([self.part(key, n)], ttl, deadline))


class Rate(Limiter):
    """A limiter that drains at a rate."""

    async def wait(self: Core, key: str, n: int = 1, timeout: float = 60) -> Result:
        """Takes a turn and waits for it, or returns a denial at once if it would come after the timeout, in seconds. If the
        caller is cancelled meanwhile, the turn is given back."""
        key, began = self._key(key), self._port.now()
        _limits.units(n)
        if self._by.lockout:
            raise ParamsError("wait doesn't work with a lockout")
        most = min(max(0, math.floor(timeout * 1000)), _limits.LONGEST)

        async def back(reply: Any) -> None:
            if reply[0] == 0:
                with contextlib.suppress(Error):
                    await self._ask(key, -n, "UPTO")

        try:
            reply = await self._port.ask(["GO.THROTTLE", key, *self._by.first, n, "RESERVE", most, "MS"], undo=back)
            result = read(reply, n, "RESERVE", self._of)
        except UnavailableError as cause:
            return failed(self._options, [Part(self, key, n)], cause).each[0]
        if result.allowed and reply[5] > 0:
            if self._port.now() - began + reply[5] / 1000 > timeout:  # the reply took part of the time
                await back(reply)
                return dataclasses.replace(result, allowed=False, granted=0, retry_after=reply[5] / 1000)
            try:
                await self._port.sleep(reply[5] / 1000)
            except asyncio.CancelledError:
                self._port.keep(lambda _: back(reply))
                raise
        return result


class Slots(Core):
    """A limiter of concurrent holders."""

    reset = Limiter.reset

    def lease(self, key: str, deadline: Span = "100d") -> Taking[Lease]:
        """Takes a slot, for await or async with, which renews it until the deadline."""
        return Taking(Lease([Part(self, self._key(key), 1)], self._by.period, deadline))

    def part(self: Core, key: str, holder: str, share: int = 0) -> Part:
        """A part of all(): a slot, for a holder that nobody renews."""
        if not holder or not isinstance(holder, str):
            raise ParamsError("a slot needs a holder: a text that isn't empty")
        return Part(self, self._key(key), 1, share, holder)


H = TypeVar("H", bound="Lease")


class Lease(Held):
    """A slot. In a with block it's renewed in the background, and released at the end."""

    renew, release = _held.renew, _held.release

    async def __aenter__(self: H) -> H:
        self._start()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.release()


class Hold(HeldUnits, Lease):
    """Units that are reserved. The end of a with block gives them back, unless they were settled."""

    settle = _held.settle


class Taking(Generic[H]):
    """A lease or a hold that await takes; async with also renews it and gives it back."""

    def __init__(self, held: H):
        self._held = held

    def __await__(self) -> Generator[Any, Any, H]:
        yield from self._held._begin().__await__()
        return self._held

    async def __aenter__(self) -> H:
        await self
        await self._held.__aenter__()
        return self._held

    async def __aexit__(self, *error: Any) -> None:
        await self._held.__aexit__(*error)


class Limits(Makers[Rate, Limiter, Slots]):
    __doc__ = f"{Makers.__doc__}\n    Each event loop gets its own connections."
    _library, _ports, _kinds = redis.asyncio, Tasks, (Rate, Limiter, Slots)

    async def all(self: AnyMakers, *parts: Part) -> AllResult:
        """Takes all parts or none, in one call. In a cluster their keys need one hash tag."""
        if not parts or parts[0]._share:
            raise ParamsError("all needs a part, and a share needs one before it")
        try:
            reply = await self._port.ask(*joined([[part._key, *part._words()] for part in parts]))
            read(reply, 0, "ALL", parts[0]._limiter._of)
        except UnavailableError as cause:
            return failed(self._options, parts, cause)
        each = tuple(read(one, part._n, "", part._limiter._of) for one, part in zip(reply[6:], parts))
        return decided(tuple(dataclasses.replace(one, granted=0) for one in each) if reply[0] else each, reply[5])

    def hold(self, *parts: Part, ttl: Span = "30s", deadline: Span = "1h") -> Taking[Hold]:
        """Reserves the units of all parts or none, and settles each: see Limiter.hold. In a cluster their keys need one hash tag."""
        return Taking(Hold(parts, ttl, deadline))

    def resume(self, ticket: str, *parts: Part, ttl: Span = "30s") -> Hold:
        """Returns the hold of a ticket, to end it in this process: with its parts, whatever their units."""
        return _held.resumed(Hold(parts, ttl, least=0), ticket)

    async def check(self: AnyMakers) -> bool:
        """Returns whether the server is available, and raises a NoModuleError if it lacks the module. Call it when the program
        starts."""
        try:
            await self._port.ask(["GO.THROTTLE_RO", self._prefix + "check", 0, 1, 1])
        except UnavailableError:
            return False
        return True

    async def close(self: AnyMakers) -> None:
        """Releases what is renewed, and closes all connections: of asyncio, those of this event loop."""
        for held in list(self._kept):
            await _held.release(held)
        await self._port.close()

    async def __aenter__(self) -> Limits:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()


connect = Limits
