"""Slots and holds: what lapses unless it's renewed. docs/proofs.md says why a hold is charged once."""
from __future__ import annotations

import random
import re
import uuid
from typing import Any

from ._core import Core, Ending, Pause
from ._errors import Error, ParamsError, UnavailableError
from ._limits import units
from ._result import Result, read

TRIES = 0.1  # seconds between two tries of a settlement


class Held:
    """A slot or a hold."""

    def __init__(self, limiter: Core, key: str, words: list[Any], ttl: int, deadline: float, charged: str = ""):
        self.result, self._charged = Result(False), charged or key
        self._limiter, self._port, self._at, self._words = limiter, limiter._port, key, words
        self._ttl, self._deadline = ttl / 1000, limiter._port.now() + deadline
        self._id = uuid.uuid4().hex  # of this try alone
        self._sent = 0.0  # when the last call was sent that was admitted; 0: the server holds nothing
        self._lost = self._over = False
        self._stop: Ending | None = None

    @property
    def allowed(self) -> bool:
        return self.result.allowed

    @property
    def lost(self) -> bool:
        """Whether it's known that the server doesn't hold it any more."""
        return self._lost

    async def _take(self, words: list[Any], keys: int, n: int) -> None:
        sent = self._port.now()
        try:
            self.result = read(await self._port.ask(words, keys), n, "", self._limiter._of)
        except UnavailableError as cause:
            self._port.keep(lambda pause: self._forget())  # the call may have taken it
            self.result = self._limiter._failed(self._charged, n, cause, self._id)
            return
        if self.result.allowed:
            self._sent = sent

    async def _forget(self) -> None:
        try:
            await self._port.ask(["GO.RELEASE", self._at, self._id])
        except Error:
            pass  # it lapses

    async def _renew(self) -> bool:
        """Renews it, and returns whether it's still held. It never takes anew: 0 units."""
        if not self._sent or self._lost or self._over:
            return self.result.allowed and not self._lost and not self._over
        sent = self._port.now()
        reply = await self._port.ask(["GO.LEASE", self._at, *self._words, self._id, 0, "MS"])
        self._lost = bool(reply[0])
        self._sent = self._sent if reply[0] else sent
        return not self._lost

    async def _keep(self, pause: Pause) -> None:
        """Renews it until the deadline, or until its end."""
        wait = self._ttl / 3
        while not self._lost and self._port.now() < self._deadline:
            if await pause(wait * random.uniform(0.9, 1)):
                return
            try:
                await self._renew()
                wait = self._ttl / 3
            except Error:
                wait = self._ttl / 10
                self._lost = self._port.now() >= self._sent + self._ttl

    def _start(self) -> None:
        if self._sent and not self._over and self._stop is None:
            self._stop = self._port.keep(self._keep)
            self._limiter._all.kept.add(self._release)

    async def _finish(self) -> None:
        """Ends the renewals."""
        stop, self._stop = self._stop, None
        self._limiter._all.kept.discard(self._release)
        if stop is not None:
            await stop()

    async def _release(self) -> bool:
        """Gives it back, and returns whether it was held. It lapses by itself if the server is unavailable."""
        await self._finish()
        if self._over or not self._sent:
            by = self._limiter._by.part(self._limiter._options.fail_local or 1)
            self._limiter._all.local.release(by, self._charged, self._id)
            return False
        self._over = True
        try:
            return bool(await self._port.ask(["GO.RELEASE", self._at, self._id]))
        except UnavailableError:
            return False


async def slot(held: Held) -> None:
    """Takes a slot."""
    await held._take(["GO.LEASE", held._at, *held._words, held._id, "MS"], 1, 1)


class HeldUnits(Held):
    """Units that are reserved until their cost is known."""

    def __init__(self, limiter: Core, key: str, n: int, ttl: int, deadline: float):
        full, self._n = limiter._key(key), units(n)
        super().__init__(limiter, held_key(full), [limiter._by.units, ttl], ttl, deadline, full)

    async def _hold(self) -> None:
        by = self._limiter._by
        peek = [self._charged, by.kind, *by.first, 0, *by.last]
        await self._take(["GO.ALL", *peek, "KEY", self._at, "LEASE", *self._words, self._id, self._n, "SHARE", 1, "MS"], 2, self._n)

    async def _settle(self, actual: int) -> str:
        """Charges the real cost, and gives back the hold: "counted", "refused", or "unknown" if nobody knows."""
        units(actual, 0)
        await self._finish()
        if self._over:
            raise ParamsError("a hold is settled once, before it's released")
        self._over = True
        if not self._sent:
            return "unknown"  # it was admitted without the server
        said = await self._charge(actual)
        if said == "lost":  # nothing was charged: a fresh hold of one slot makes that safe to repeat
            self._id, self._n, self._sent = uuid.uuid4().hex, 1, 0.0
            await self._hold()
            said = await self._charge(actual) if self._sent else "refused"
        return "unknown" if said == "lost" else said

    async def _charge(self, actual: int) -> str:
        by, unsure, ends = self._limiter._by, False, self._sent + self._ttl * 0.9  # a tenth is for clocks that differ
        words = ["GO.ALL", self._at, "RELEASE", self._id, "KEY", self._charged, by.kind, *by.first, actual, *by.last, "FORCE", "MS"]
        while True:
            try:
                reply = await self._port.ask(words, 2)
            except UnavailableError:
                if self._port.now() >= ends:
                    return "unknown"
                unsure = True
                await self._port.sleep(min(TRIES, self._ttl / 20))
                continue
            if not reply[0]:
                return "counted"
            if not unsure:
                return "lost"
            return "counted" if self._port.now() < ends else "unknown"  # by the try without a reply


def held_key(key: str) -> str:
    """Returns the key of a key's holds, which is in its slot."""
    if re.match(r"[^{]*\{[^}]+\}", key):
        return f"{key}:held"
    if "{" in key or "}" in key:
        raise ParamsError(f"a hold's key has a hash tag or no brace: {key!r}")
    return f"{{{key}}}:held"
