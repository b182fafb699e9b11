"""Sends the calls of an event loop: those of one key as one command, and those of one server in batches."""
from __future__ import annotations

import asyncio
import collections
import contextlib
from typing import Any, AsyncGenerator, Awaitable, Callable, Coroutine, Sequence

import redis

from ._errors import FAILURES, Error, UnavailableError
from ._port import Ending, Pause, Port, T, Watch, run

BATCH, WIDE = 64, 4  # calls sent together, and how many batches may be under way, so a server gets few connections
STEPS = 16  # callers that begin within this part of the time limit share a timer


class Loop:
    """What belongs to one event loop: connections don't work in another one."""

    def __init__(self, port: Tasks, client: Any):
        self.port, self.client, self.loop = port, client, asyncio.get_running_loop()
        self.calls: dict[Watch, Calls] = {}
        self.merged: dict[Any, list[asyncio.Future[Any]]] = {}  # who waits for the call under way to end
        self.tasks: set[asyncio.Task[Any]] = set()
        self.due: collections.deque[tuple[float, asyncio.Future[Any]]] = collections.deque()  # when they fail
        self.timer: asyncio.TimerHandle | None = None  # one for all: a timer for each would cost more than its call
        self._late = False
        self.life: Any = self._live()
        run(self.life.__anext__())

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self.loop.create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def future(self) -> asyncio.Future[Any]:
        """Returns a future that fails at the time limit."""
        future, end = self.loop.create_future(), self.loop.time() + self.port.limit
        self.due.append((end, future))
        if self.timer is None:
            self.timer = self.loop.call_at(end, self._expire)
        return future

    def _expire(self) -> None:
        now, step = self.loop.time(), self.port.limit / STEPS
        if self.timer and now - self.timer.when() > step and not self._late:
            self._late = True  # the loop was busy, and not the server: replies may be there
            self.timer = self.loop.call_at(now + self.port.limit / 2, self._expire)
            return
        self._late, self.timer = False, None
        self.fail(f"no reply within {self.port.limit * 1000:.0f} ms", now)
        if self.due:
            self.timer = self.loop.call_at(max(self.due[0][0], now + step), self._expire)

    def fail(self, why: str, now: float) -> None:
        """Fails the futures that are due, and forgets those that are done."""
        while self.due and (self.due[0][0] <= now or self.due[0][1].done()):
            _, future = self.due.popleft()
            if not future.done():
                future.set_exception(UnavailableError(why))

    async def _live(self) -> AsyncGenerator[None, None]:
        """Ends with the client, or with the event loop, which closes its generators."""
        try:
            yield
        finally:
            self.port._loops.pop(self.loop, None)
            if self.timer is not None:
                self.timer.cancel()
            self.fail("the client is closed", float("inf"))
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
                for (_, future), reply in zip(batch, await self._known([words for words, _ in batch])):
                    if isinstance(reply, FAILURES):
                        reply = self.loop.port.failed(reply, self.watch)
                    elif not isinstance(reply, Exception):
                        self.watch.works()
                    if not future.done():
                        (future.set_exception if isinstance(reply, Exception) else future.set_result)(reply)
        finally:
            self.busy -= 1

    async def _known(self, calls: list[list[Any]]) -> list[Any]:
        """Sends calls, also to a server that doesn't know the script: the first one brings the text."""
        replies = await self._replies(calls)
        unknown = [i for i, reply in enumerate(replies) if isinstance(reply, redis.exceptions.NoScriptError)]
        for some in unknown[:1], unknown[1:]:
            again = [self.loop.port.text(calls[i]) if i == unknown[0] else calls[i] for i in some]
            for i, reply in zip(some, await self._replies(again) if again else ()):
                replies[i] = reply
        return replies

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

    def __init__(self, *about: Any):
        super().__init__(*about)
        self._loops: dict[asyncio.AbstractEventLoop, Loop] = {}

    def loop(self) -> Loop:
        running = asyncio.get_running_loop()
        if running not in self._loops:
            self._loops = {one: of for one, of in self._loops.items() if not one.is_closed()}
            self._loops[running] = Loop(self, self._make())
        return self._loops[running]

    def client(self) -> Any:
        return self.loop().client

    async def ask(self, words: list[Any], more: Sequence[str] = (), undo: Callable[[Any], Awaitable[Any]] | None = None) -> Any:
        loop = self.loop()
        watch = self.watch(loop.client, words[1])
        if watch not in loop.calls:
            loop.calls[watch] = Calls(loop, watch)
        future = loop.calls[watch].ask(self.words(words, more))
        if undo is None:
            return await future
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            loop.start(self._undo(future, undo))
            raise

    async def _undo(self, future: asyncio.Future[Any], undo: Callable[[Any], Awaitable[Any]]) -> None:
        with contextlib.suppress(Error):
            await undo(await future)

    async def merge(self, spot: Any, ask: Callable[[int], Awaitable[T]]) -> T:
        """Makes one call of those that come while a call for the same key and limit is under way."""
        loop = self.loop()
        others = loop.merged.get(spot)
        if others is not None:
            others.append(loop.future())
            return await others[-1]  # type: ignore[no-any-return]
        loop.merged[spot] = []
        try:
            return await ask(1)
        finally:
            if loop.merged[spot]:
                loop.start(self._lead(loop, spot, ask))
            else:
                del loop.merged[spot]

    async def _lead(self, loop: Loop, spot: Any, ask: Callable[[int], Awaitable[Any]]) -> None:
        """Asks for those who wait, until nobody does."""
        while futures := [one for one in loop.merged.pop(spot) if not one.done()]:
            loop.merged[spot] = []
            try:
                result = await ask(len(futures))
                still = [one for one in futures if not one.done()]  # those who have gone leave their units to the others
                for future, one in zip(still, result.shared(len(still)) if len(futures) > 1 else [result]):
                    future.set_result(one)
            except Exception as error:
                for future in futures:
                    if not future.done():
                        future.set_exception(error)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def keep(self, renew: Callable[[Pause], Coroutine[Any, Any, Any]]) -> Ending:
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
        if asyncio.get_running_loop() in self._loops:
            await self.loop().life.aclose()
