"""Sends calls once, within a time limit, to a server that answers. For threads its coroutines never suspend, so sync() needs no
event loop."""
from __future__ import annotations

import functools
import hashlib
import logging
import pathlib
import threading
import time
from typing import Any, Awaitable, Callable, Coroutine, ParamSpec, Sequence, TypeVar

import redis

from ._errors import FAILURES, Error, NoModuleError, ParamsError, UnavailableError, classify

P = ParamSpec("P")
T = TypeVar("T")
Pause = Callable[[float], Awaitable[bool]]
Ending = Callable[[], Coroutine[Any, Any, None]]

LOG = logging.getLogger("gothrottle")
MOST, SHORTEST, LONGEST = 5, 0.1, 0.5  # in a row, until nothing is sent for a pause, in seconds
FAULTS = 10  # different ones are logged, each once
CLOCK: Any = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))  # which goes on while a machine sleeps


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
                raise UnavailableError("no call was sent: the last ones had no reply", sent=False)
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
            if self._pause or self._failures >= MOST and now - self._since >= (self._limit if late else 0):
                self._pause = min(max(2 * self._pause, SHORTEST), LONGEST)
                self._until = now + self._pause
        if not away:
            LOG.warning("no decision%s: %s", self._server, error)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("a call waits")


def sync(verb: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Returns a verb for threads."""
    @functools.wraps(verb)
    def call(*args: P.args, **options: P.kwargs) -> T:
        return run(verb(*args, **options))
    return call


class Port:
    """Sends calls and waits: of threads. asyncio's does it otherwise."""

    def __init__(self, make: Callable[[], Any], limit: float, script: bool | str):
        text = pathlib.Path(__file__).with_name("gothrottle.lua").read_text() if script is True else script or ""
        self.script, self.limit, self._make = text, limit, make
        self.now = time.monotonic if CLOCK is None else lambda: time.clock_gettime(CLOCK)
        self._sha = hashlib.sha1(text.encode()).hexdigest()
        self._watches: dict[str, Watch] = {}
        self._faults: set[str] = set()
        self._made: Any = None
        self._running: list[threading.Thread] = []

    def words(self, words: list[Any], more: Sequence[str]) -> list[Any]:
        """Returns the words that are sent: of the module's command, or of the script, if there is one."""
        if not self.script or not words[0].startswith("GO."):
            return words
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

    def client(self) -> Any:
        """Returns the client of redis-py, and makes it if need be."""
        if self._made is None:
            self._made = self._make()
        return self._made

    async def ask(self, words: list[Any], more: Sequence[str] = (), undo: Callable[[Any], Awaitable[Any]] | None = None) -> Any:
        """Sends a call once, with more keys after the first, and returns its reply or raises an Error. If the caller is cancelled
        before, undo gets the reply."""
        watch, call = self.watch(self._made, words[1]), self.words(words, more)
        watch.admit()
        try:
            client = self.client()  # a cluster's asks for the nodes
            try:
                reply = client.execute_command(*call)
            except redis.exceptions.NoScriptError:
                reply = client.execute_command(*self.text(call))
        except FAILURES as error:
            raise self.failed(error, watch) from error
        watch.works()
        return reply

    async def merge(self, spot: Any, ask: Callable[[int], Awaitable[T]]) -> T:
        """Asks for one unit, or for those of several callers."""
        return await ask(1)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def keep(self, renew: Callable[[Pause], Coroutine[Any, Any, Any]]) -> Ending:
        """Lets renew run in the background, and returns what ends it. Its pause waits for so many seconds, or for the end, and
        then returns True."""
        over = threading.Event()

        async def pause(seconds: float) -> bool:
            return over.wait(seconds)

        thread = threading.Thread(target=lambda: run(renew(pause)), name="gothrottle", daemon=True)
        thread.start()
        self._running = [one for one in self._running if one.is_alive()] + [thread]

        async def stop() -> None:
            over.set()
            thread.join()

        return stop

    async def close(self) -> None:
        for thread in self._running:
            thread.join()
        client, self._made = self._made, None
        if client is not None:
            client.close()
            pool = getattr(client, "connection_pool", None)
            (pool.disconnect if pool else client.disconnect_connection_pools)()
