"""Sends the calls of an event loop: those of one key as one command, and those of one server in batches."""
from __future__ import annotations

import asyncio
import collections
import weakref
from typing import Any, Awaitable, Callable, Coroutine

import redis

from ._core import Ending, Pause, Port
from ._errors import FAILURES, UnavailableError
from ._limits import Limit
from ._result import Result
from ._wire import Watch, Wire

BATCH, WIDE = 64, 4  # calls sent together, and how many batches may be under way, so a server gets few connections
STEPS = 16  # callers that begin within this part of the time limit share a timer


class Loop:
    """What belongs to one event loop: connections don't work in another one."""

    def __init__(self, wire: Wire, client: Any):
        self.wire, self.client, self.loop = wire, client, asyncio.get_running_loop()
        self.calls: dict[Watch, Calls] = {}
        self.merged: dict[tuple[str, Limit], list[asyncio.Future[Result]]] = {}  # who waits for the call under way to end
        self.tasks: set[asyncio.Task[Any]] = set()
        self.timers: dict[asyncio.TimerHandle, list[asyncio.Future[Any]]] = {}
        self._young: list[asyncio.Future[Any]] = []  # the futures of the newest timer
        self._until = 0.0  # others join them until then

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self.loop.create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def future(self) -> asyncio.Future[Any]:
        """Returns a future that fails at the time limit. A timer for each would cost more than its call."""
        future, now = self.loop.create_future(), self.loop.time()
        if now >= self._until:
            self._young, self._until = [], now + self.wire.limit / STEPS
            self._end_at(now + self.wire.limit, self._young)
        self._young.append(future)
        return future

    def _end_at(self, at: float, futures: list[asyncio.Future[Any]], late: bool = False) -> None:
        def end() -> None:
            del self.timers[handle]
            now = self.loop.time()
            if now - at > self.wire.limit / STEPS and not late:  # the loop was busy, and not the server: replies may be there
                self._end_at(now + self.wire.limit / 2, futures, late=True)
            else:
                self._end(futures, f"no reply within {self.wire.limit * 1000:.0f} ms")

        handle = self.loop.call_at(at, end)
        self.timers[handle] = futures

    def _end(self, futures: list[asyncio.Future[Any]], why: str) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(UnavailableError(why))

    async def close(self) -> None:
        for handle, futures in self.timers.items():
            handle.cancel()
            self._end(futures, "the client is closed")
        self.timers.clear()
        while self.tasks:  # they end within the time limits of their sockets
            await asyncio.wait(self.tasks)
        await getattr(self.client, "aclose", self.client.close)()
        if hasattr(self.client, "connection_pool"):
            await self.client.connection_pool.disconnect()


class Calls:
    """The calls of one server."""

    def __init__(self, loop: Loop, watch: Watch):
        self.loop, self.watch = loop, watch
        self.waiting: collections.deque[tuple[list[Any], asyncio.Future[Any]]] = collections.deque()
        self.busy = 0

    def ask(self, words: list[Any]) -> asyncio.Future[Any]:
        self.watch.admit()
        future = self.loop.future()
        self.waiting.append((words, future))
        if self.busy < WIDE:
            self.busy += 1
            self.loop.start(self._send())
        return future

    async def _send(self) -> None:
        try:
            while self.waiting:
                batch = [self.waiting.popleft() for _ in range(min(BATCH, len(self.waiting)))]
                batch = [one for one in batch if not one[1].done()]  # the others have gone
                if batch:
                    await self._send_batch([words for words, _ in batch], [future for _, future in batch])
        finally:
            self.busy -= 1

    async def _send_batch(self, calls: list[list[Any]], futures: list[asyncio.Future[Any]]) -> None:
        wire, watch = self.loop.wire, self.watch
        replies = await self._replies(calls)
        unknown = [i for i, reply in enumerate(replies) if isinstance(reply, redis.exceptions.NoScriptError)]
        if unknown:  # the first one brings the text
            replies[unknown[0]], = await self._replies([wire.text(calls[unknown[0]])])
            for i, reply in zip(unknown[1:], await self._replies([calls[i] for i in unknown[1:]])):
                replies[i] = reply
        for reply, future in zip(replies, futures):
            if not isinstance(reply, Exception):
                watch.works()
                if not future.done():
                    future.set_result(reply)
                continue
            error = wire.failed(reply, watch) if isinstance(reply, FAILURES) else reply
            if not future.done():
                future.set_exception(error)

    async def _replies(self, calls: list[list[Any]]) -> list[Any]:
        """Sends calls once. An error takes the place of its reply."""
        client = self.loop.client
        try:
            if len(calls) == 1:
                return [await client.execute_command(*calls[0])]
            if hasattr(client, "get_node_from_key"):  # a cluster's pipeline may send calls again
                return list(await asyncio.gather(*(client.execute_command(*words) for words in calls), return_exceptions=True))
            pipeline = client.pipeline(transaction=False)
            for words in calls:
                pipeline.execute_command(*words)
            return list(await pipeline.execute(raise_on_error=False))
        except Exception as error:
            return [error] * len(calls)


class Tasks(Port):
    """The port of asyncio. Each event loop has a client of its own."""

    def __init__(self, wire: Wire, client: Callable[[], Any]):
        self.wire, self.client, self.now = wire, client, wire.now
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Loop] = weakref.WeakKeyDictionary()

    def loop(self) -> Loop:
        running = asyncio.get_running_loop()
        if running not in self._loops:
            self._loops[running] = Loop(self.wire, self.client()())
        return self._loops[running]

    async def ask(self, words: list[Any], keys: int = 1) -> Any:
        loop = self.loop()
        watch = self.wire.watch(loop.client, words[1])
        calls = loop.calls.get(watch)
        if calls is None:
            calls = loop.calls[watch] = Calls(loop, watch)
        return await calls.ask(self.wire.words(words, keys))

    async def merge(self, spot: tuple[str, Limit], ask: Callable[[int], Awaitable[Result]]) -> Result:
        """Makes one call of those that come while a call for the same key and limit is under way."""
        loop = self.loop()
        others = loop.merged.get(spot)
        if others is not None:
            others.append(loop.future())
            return await others[-1]
        loop.merged[spot] = []
        try:
            return await ask(1)
        finally:
            self._next(loop, spot, ask)

    def _next(self, loop: Loop, spot: tuple[str, Limit], ask: Callable[[int], Awaitable[Result]]) -> None:
        futures = [one for one in loop.merged.pop(spot) if not one.done()]
        if futures:
            loop.merged[spot] = []
            loop.start(self._lead(loop, spot, ask, futures))

    async def _lead(self, loop: Loop, spot: tuple[str, Limit], ask: Callable[[int], Awaitable[Result]],
                    futures: list[asyncio.Future[Result]]) -> None:
        try:
            result = await ask(len(futures))
            still = [one for one in futures if not one.done()]  # those who have gone leave their units to the others
            for future, one in zip(still, result.shared(len(still)) if len(futures) > 1 else [result]):
                future.set_result(one)
        except Exception as error:
            for future in futures:
                if not future.done():
                    future.set_exception(error)
        finally:
            self._next(loop, spot, ask)

    async def sleep(self, seconds: float, cancelled: Callable[[], Coroutine[Any, Any, Any]] | None = None) -> None:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            if cancelled is not None:
                self.loop().start(cancelled())
            raise

    def keep(self, renew: Callable[[Pause], Coroutine[Any, Any, None]]) -> Ending:
        over = asyncio.Event()

        async def pause(seconds: float) -> bool:
            try:
                await asyncio.wait_for(over.wait(), seconds)
            except asyncio.TimeoutError:
                pass
            return over.is_set()

        task = self.loop().start(renew(pause))

        async def stop() -> None:
            over.set()
            await asyncio.wait([task])

        return stop

    async def close(self) -> None:
        loop = self._loops.pop(asyncio.get_running_loop(), None)
        if loop is not None:
            await loop.close()
