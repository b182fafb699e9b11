"""Slots and holds: what lapses unless it's renewed. docs/proofs.md says why a hold is charged once."""
from __future__ import annotations

import asyncio
import dataclasses
import random
import re
import time
import uuid
from typing import Any, Sequence, TypeVar

from ._core import Part, failed, joined
from ._errors import Error, ParamsError, UnavailableError
from ._limits import Result, Span, millis, read, units
from ._port import Ending, Pause

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
TRIES = 0.1  # seconds between two tries of a settlement


class Held:
    """A slot or a hold. Its verbs are functions, which the classes for threads and for asyncio take."""

    def __init__(self, parts: Sequence[Part], ttl: int, deadline: Span):
        self.result = Result(False)
        self._parts, self._all, self._port = parts, parts[0]._limiter._all, parts[0]._limiter._port
        self._keys = [part._key for part in parts]  # of what is held
        self._ttl, self._deadline = ttl / 1000, self._port.now() + millis(deadline) / 1000
        self._id = ""  # of this try alone
        self._sent = 0.0  # when the last call was sent that was admitted; 0: the server holds nothing
        self.lost = False  # whether it's known that the server doesn't hold it any more
        self._over = self._here = False  # here: a slot of this process
        self._stop: Ending | None = None

    @property
    def allowed(self) -> bool:
        return self.result.allowed

    def _ends(self) -> float:
        """Returns until when the server surely holds it: a tenth is for clocks that differ."""
        return self._sent + self._ttl * 0.9

    def _clauses(self, n: int | None = None) -> list[list[Any]]:
        """Returns clauses that take n of what is held, by default the parts' units."""
        return [[key, "LEASE", part._limiter._by.units, round(self._ttl * 1000), self._id, part._n if n is None else n]
                for key, part in zip(self._keys, self._parts)]

    async def _call(self, clauses: list[list[Any]], *last: Any) -> Result:
        """Sends a call for as many clauses for each part."""
        if len(clauses) == 1:
            (key, kind, *words), part = clauses[0], self._parts[0]
            return read(await self._port.ask([f"GO.{kind}", key, *words, *last, "MS"]), part._n, "", part._limiter._of)
        reply = await self._port.ask(*joined(clauses, *last))
        result = read(reply, 1, "ALL", self._parts[0]._limiter._of)
        part = self._parts[reply[5] * len(self._parts) // len(clauses)]  # which decided
        return dataclasses.replace(result, of=part._limiter._of, granted=part._n if result.allowed else 0)

    async def _take(self, n: int | None = None) -> None:
        """Takes it. A try without a reply is forgotten: each has an id of its own."""
        sent, self._id, self._sent = self._port.now(), uuid.uuid4().hex, 0.0
        try:
            self.result = await self._call(self._clauses(n))
        except (UnavailableError, asyncio.CancelledError):
            self._port.keep(lambda pause, id=self._id: self._release(id))  # type: ignore[misc]
            raise
        if self.result.allowed:
            self._sent = sent

    async def _begin(self) -> None:
        try:
            await self._take()
        except UnavailableError as cause:
            self._take_here(cause)

    def _take_here(self, cause: UnavailableError) -> None:
        parts = [dataclasses.replace(part, _holder=self._id) for part in self._parts]
        self.result = failed(self._parts[0]._limiter._options, parts, cause)
        self._here = self.result.allowed and self.result.source == "failed-local" and parts[0]._limiter._by.kind == "LEASE"

    async def _keep(self, pause: Pause) -> None:
        """Renews it until the deadline, or until its end."""
        wait = self._ttl / 3
        while not self.lost and self._port.now() < self._deadline:
            if await pause(wait * random.uniform(0.9, 1)):
                return
            try:
                await renew(self)
                wait = self._ttl / 3
            except Error:
                wait = self._ttl / 10
                self.lost = self._port.now() >= self._sent + self._ttl

    def _start(self) -> None:
        if (self._sent or self._here) and not self._over and self._stop is None:
            self._stop = self._port.keep(self._keep)
            self._all._kept.add(self)

    async def _finish(self) -> None:
        """Ends the renewals."""
        stop, self._stop = self._stop, None
        self._all._kept.discard(self)
        if stop is not None:
            await stop()

    async def _release(self, id: str) -> bool:
        try:
            return any([await self._port.ask(["GO.RELEASE", key, id]) for key in self._keys])
        except Error:
            return False  # it lapses

    def _settle_here(self, cost: int) -> bool:
        """Charges the cost if this process decided, and returns whether it did."""
        for part in self._parts if self.result.source == "failed-local" else ():
            by = part._limiter._by.part(self._parts[0]._limiter._options.fail_local)
            self._all._local.settle(by, part._key, self._id, part._n, cost)
        return self.result.source == "failed-local"


async def renew(self: Held) -> bool:
    """Renews it now, and returns whether it's still held. It never takes anew."""
    if self._sent and not self.lost and not self._over:
        sent = self._port.now()
        self.lost = not (await self._call(self._clauses(0))).allowed
        self._sent = self._sent if self.lost else sent
    elif self._here and not self._over:
        self._take_here(UnavailableError(str(self.result.cause)))
    return self.result.allowed and not self.lost and not self._over


async def release(self: Held) -> bool:
    """Gives it back, and returns whether it was held. It lapses by itself if the server is unavailable."""
    await self._finish()
    over, self._over = self._over, True
    if over or not self.result.allowed or self._settle_here(0) or not self._sent:
        return False
    return await self._release(self._id)


class HeldUnits(Held):
    """Units that are reserved until their cost is known."""

    def __init__(self, parts: Sequence[Part], ttl: Span = "30s", deadline: Span = "1h", least: int = 1):
        for part in parts:
            units(part._n, least)
        if not parts or any(part._share or part._limiter._by.kind == "LEASE" for part in parts):
            raise ParamsError("a hold needs parts of rates, windows or quotas, without a share")
        super().__init__(parts, millis(ttl), deadline)
        self._keys = [held_key(part._key) for part in parts]
        self._unsure = False  # whether a try to settle had no reply
        self._again = False  # whether settle may be called again

    @property
    def ticket(self) -> str:
        """Secret words by which Limits.resume, also of clients in other languages, finds the hold. "": the server holds nothing."""
        ms, text = round((self._ends() - self._port.now() + time.time()) * 1000), ""
        while ms > 0:
            ms, text = ms // 36, DIGITS[ms % 36] + text
        return f"{self._id}.{text}" if self._sent else ""

    def _clauses(self, n: int | None = None) -> list[list[Any]]:
        held = super()._clauses(n)
        return held if n == 0 else self._both(0, [[*one, "SHARE", 1] for one in held])

    def _both(self, cost: int, held: list[list[Any]]) -> list[list[Any]]:
        return [clause for part, one in zip(self._parts, held) for clause in ([part._key, *part._words(cost)], one)]

    async def _charge(self, cost: int) -> str:
        while True:
            if not self._sent:
                self._unsure = False
                await self._take(1)
                if not self._sent:
                    return "refused"
            try:
                counted = (await self._call(self._both(cost, [[key, "RELEASE", self._id] for key in self._keys]), "FORCE")).allowed
            except asyncio.CancelledError:
                self._unsure = True
                raise
            except Error as error:
                if isinstance(error, UnavailableError) and self._port.now() < self._ends():
                    self._unsure = self._unsure or error.sent
                    await self._port.sleep(min(TRIES, self._ttl / 20))
                    continue
                if isinstance(error, UnavailableError) or self._unsure:
                    return "unknown"
                raise
            if counted or self._unsure:  # now, or by the try without a reply
                return "counted" if counted or self._port.now() < self._ends() else "unknown"
            self._sent = 0.0  # it was lost, and nothing was charged: a fresh one makes that safe to repeat


async def settle(self: HeldUnits, actual: int) -> str:
    """Charges the real cost, past the limit if need be, and gives back the rest. Returns "counted", "refused" (the hold was
    lost, and the limit is used up), or "unknown" (it may have been charged). It tries again while there's no reply. After an
    error nothing is charged, and you may settle again."""
    units(actual, 0)
    await self._finish()
    if not self.result.allowed or self._over and not self._again:
        raise ParamsError("a hold that was admitted is settled once, before it's released")
    self._over, self._again, said = True, False, ""
    try:
        said = "counted" if self._settle_here(actual) else await self._charge(actual)
    finally:
        self._again = not said
    return said


U = TypeVar("U", bound=HeldUnits)


def resumed(self: U, ticket: str) -> U:
    """Makes it the hold of a ticket. The ticket "" is of a hold that the server doesn't hold."""
    found = re.fullmatch(r"([^.]+)\.([0-9a-z]{1,12})", ticket)
    if ticket and not found:
        raise ParamsError(f"{ticket!r} is no ticket")
    self.result = Result(True, of=self._parts[0]._limiter._of)
    if found:
        self._id, self._unsure = found[1], True  # somebody may have settled it
        self._sent = self._port.now() - time.time() + int(found[2], 36) / 1000 - self._ttl * 0.9
    return self


def held_key(key: str) -> str:
    """Returns the key of a key's holds, which is in its slot."""
    if re.match(r"[^{]*\{[^}]+\}", key):
        return f"{key}:held"
    if "{" in key or "}" in key:
        raise ParamsError(f"a hold's key has a hash tag or no brace: {key!r}")
    return f"{{{key}}}:held"
