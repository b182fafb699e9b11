"""Sends calls once, within a time limit, to a server that answers."""
from __future__ import annotations

import hashlib
import logging
import pathlib
import threading
from typing import Any, Callable

import redis

from ._errors import Error, NoModuleError, ParamsError, UnavailableError, classify

LOG = logging.getLogger("gothrottle")
FAILURES, SHORTEST, LONGEST = 5, 0.1, 0.5  # in a row, until nothing is sent for a pause, in seconds
FAULTS = 10  # different ones are logged, each once


class Watch:
    """Stops asking a server that doesn't answer, and logs each outage once. Threads share it."""

    def __init__(self, server: str, limit: float, now: Callable[[], float]):
        self._server, self._limit, self._now = server, limit, now
        self._lock = threading.Lock()
        self._failures, self._since, self._pause, self._until = 0, 0.0, 0.0, 0.0
        self._away = False

    def admit(self) -> None:
        """Raises an error during a pause. After it, one call tries the server, and the others wait for its end."""
        with self._lock:
            if not self._pause:
                return
            now = self._now()
            if now < self._until:
                raise UnavailableError("no call was sent: the last ones had no reply")
            self._until = now + self._limit + self._pause

    def works(self) -> None:
        if self._failures or self._away:
            with self._lock:
                self._failures, self._pause, away, self._away = 0, 0.0, self._away, False
            if away:
                LOG.warning("the server decides again%s", self._server)

    def fails(self, error: Error, late: bool) -> None:
        """Notes a call that failed. Those that a stall made late fail together: they count if it lasts."""
        with self._lock:
            now, self._failures, away, self._away = self._now(), self._failures + 1, self._away, True
            self._since = now if self._failures == 1 else self._since
            if self._pause or self._failures >= FAILURES and now - self._since >= (self._limit if late else 0):
                self._pause = min(max(2 * self._pause, SHORTEST), LONGEST)
                self._until = now + self._pause
        if not away:
            LOG.warning("no decision%s: %s", self._server, error)


class Wire:
    """What the clients of both kinds have in common: the script, the servers' watches, and the log."""

    def __init__(self, script: bool | str, limit: float, now: Callable[[], float]):
        text = pathlib.Path(__file__).with_name("gothrottle.lua").read_text() if script is True else script or ""
        self.script, self.limit, self.now = text, limit, now
        self._sha = hashlib.sha1(text.encode()).hexdigest()
        self._watches: dict[str, Watch] = {}
        self._faults: set[str] = set()

    def words(self, words: list[Any], keys: int = 1) -> list[Any]:
        """Returns the words that are sent: of the module's command, or of the script, if there is one. The further keys of
        GO.ALL follow KEY."""
        if not self.script or not words[0].startswith("GO."):
            return words
        more = [words[i + 1] for i, word in enumerate(words) if word == "KEY"] if keys > 1 else []
        return ["EVALSHA", self._sha, 1 + len(more), words[1], *more, words[0], *words[2:]]

    def text(self, words: list[Any]) -> list[Any]:
        """Returns the words of a call that wasn't run, because the server doesn't know the script."""
        return ["EVAL", self.script, *words[2:]]

    def watch(self, client: Any, key: str) -> Watch:
        """Returns the watch of the server that has a key."""
        server = ""
        if hasattr(client, "get_node_from_key"):
            try:
                server = f" by {client.get_node_from_key(key).name}"
            except (redis.RedisError, redis.exceptions.RedisClusterException, AttributeError, KeyError):
                pass  # nobody knows the cluster's slots yet
        if server not in self._watches:
            self._watches.setdefault(server, Watch(server, self.limit, self.now))
        return self._watches[server]

    def failed(self, error: Exception, watch: Watch) -> Error:
        """Notes why a call failed, and returns the error for its caller."""
        found = classify(error)
        found.__cause__ = None if found is error else error
        if isinstance(found, UnavailableError):
            watch.fails(found, isinstance(error, (redis.TimeoutError, TimeoutError)))
        elif isinstance(found, (NoModuleError, ParamsError)) and len(self._faults) < FAULTS and str(found) not in self._faults:
            self._faults.add(str(found))
            LOG.error("%s", found)
        return found
