"""Decides in this process, while the server is unavailable (fail_local)."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from ._limits import NEVER, Limit, Result

KEYS = 100_000  # a process counts so many; beyond them, the oldest is forgotten
Decision = Tuple[bool, int, Optional[int], int, int]  # allowed, units left, wait and reset in µs, units granted


class Local:
    """Decides as the server does, for one process. The time is in µs, since any moment."""

    def __init__(self) -> None:
        self._rates: dict[tuple[str, Limit], tuple[int, int]] = {}  # when nothing is in use, times count; when the lockout ends
        self._entries: dict[tuple[str, Limit], list[list[Any]]] = {}  # the others': when each lapses, its units, its holder

    def take(self, name: str, by: Limit, key: str, n: int, now: int, holder: str = "", commit: bool = True) -> Result:
        decide = self._rate if by.kind == "THROTTLE" else self._window
        allowed, left, wait, reset, granted = decide(by, key, n, now, holder, commit)
        for one in self._rates, self._entries:
            table: Any = one
            if len(table) > KEYS:
                table.pop(next(iter(table)), None)
        return Result(allowed, by.units, left, 0 if allowed else NEVER if wait is None else up(wait), up(reset), granted,
                      "failed-local", of=(name, by))

    def settle(self, by: Limit, key: str, holder: str, n: int, cost: int) -> None:
        """Charges a cost in place of the n units that a holder has."""
        if (key, by) in self._rates:
            full, locked = self._rates[key, by]
            self._rates[key, by] = full + (cost - n) * by.period * 1000, locked
        mine = [[one[0], cost, ""] if one[2] == holder else one for one in self._entries.get((key, by), ())]
        self._entries[key, by] = [one for one in mine if one[1]]

    def _rate(self, by: Limit, key: str, n: int, now: int, _: str, commit: bool) -> Decision:
        period, size = by.period * 1000, by.units * by.period * 1000  # of one unit and of all, times count
        full, locked = self._rates.get((key, by), (0, 0))
        used = max(0, full - now * by.count)
        new = used + n * period
        allowed = new <= size and now >= locked
        if not allowed and by.lockout and n <= by.units and now >= locked and commit:
            locked = now + by.lockout * 1000
        wait = None if n > by.units else max(-((size - new) // by.count), locked - now)
        used = new if allowed else used
        if commit:
            self._rates[key, by] = used + now * by.count, locked
        left = 0 if now < locked else max(0, size - used) // period
        return allowed, left, wait, max(-(-used // by.count), locked - now), n if allowed else 0

    def _window(self, by: Limit, key: str, n: int, now: int, holder: str, commit: bool) -> Decision:
        entries = [one for one in self._entries.get((key, by), []) if one[0] > now]
        mine = next((one for one in entries if holder and one[2] == holder), None)
        used, lapses = sum(one[1] for one in entries), now + by.period * 1000
        if by.kind == "QUOTA" and entries:
            lapses = entries[0][0]
        allowed = mine is not None or used + n <= by.units
        wait, free = None, by.units - used
        for one in sorted(entries):
            free += one[1]
            if n <= free:
                wait = one[0] - now
                break
        if allowed:
            entries = [one for one in entries if one is not mine]
            used += 0 if mine else n
            if entries and not holder and not by.exact and by.units > 120 and lapses - entries[-1][0] < by.period * 1000 // 120:
                n += entries.pop()[1]  # they share one entry, which lapses with the newest
            entries.append([lapses, mine[1] if mine else n, holder])
        if commit:
            self._entries[key, by] = entries
        return allowed, max(0, by.units - used), wait, max((one[0] for one in entries), default=now) - now, 0 if mine or not allowed else n


def up(us: int) -> float:
    """Returns seconds, rounded up to whole ms."""
    return -(-us // 1000) / 1000
