"""The client, for threads and for asyncio, on servers in memory with faults. TestAdapters runs this file."""
import asyncio, concurrent.futures, contextlib, faulthandler, gc, inspect, io, json, os, pathlib, random, re, threading, time, unittest, unittest.mock, redis.sentinel
import redis, redis.asyncio
import gothrottle, gothrottle.aio
from gothrottle import _limits, _loop, _wire
from gothrottle._local import Local

ADDR, BARE, CLUSTER = (os.environ[name] for name in ("ADDR", "BARE", "CLUSTER"))
README = pathlib.Path(__file__).parents[1] / "README.md"
SERVERS = {f"redis://{ADDR}": {}, f"redis://{BARE}": {"script": True}, f"redis+cluster://{CLUSTER}": {}}
KINDS = gothrottle, gothrottle.aio
PATIENT = {"timeout": 20}  # decisions are tested, on machines that may be slow
control = redis.Redis.from_url(f"redis://{ADDR}")


async def done(result):  # of either kind
    return await result if inspect.isawaitable(result) else result


@contextlib.asynccontextmanager
async def block(held):  # with or async with
    if hasattr(held, "__aenter__"):
        async with held as entered:
            yield entered
    else:
        with held as entered:
            yield entered


async def until(what, f):
    for end in iter(lambda e=time.time() + 30: time.time() < e, False):
        if await f():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"not within 30 s: {what}")


def each(test):
    """Makes a test of a coroutine: for both kinds, on each server."""
    def run(self):
        for kind in KINDS:
            for url, options in SERVERS.items():
                with self.subTest(kind.__name__ + url):
                    async def body():
                        async with block(kind.connect(url, prefix=f"{test.__name__}{kind.__name__}:", **options, **PATIENT)) as limits:
                            await test(self, limits)
                    asyncio.run(body())
    return run


class Sent:
    """A client whose commands are known, and whose server replies what is given."""
    def __init__(self, reply):
        self.words, self.reply = [], reply

    async def ask(self, words, keys=1):
        self.words.append(words)
        reply = self.reply(words) if callable(self.reply) else self.reply
        if isinstance(reply, Exception):
            raise reply
        return reply


def faked(reply, **options):
    """Returns limits whose port is a Sent, and the port."""
    limits, sent = gothrottle.connect("redis://127.0.0.1:1", **options), Sent(reply)
    limits._port.ask = sent.ask
    return limits, sent


class Client(unittest.TestCase):
    def test_faults(self):
        rows = list(zip(json.loads(pathlib.Path(os.environ["FAULTS"]).read_text()), os.environ["SERVERS"].split()))
        _wire.LOG.setLevel("CRITICAL")  # that each outage is logged once is tested by the programs
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            runs = [(kind.__name__, row["name"], pool.submit(lambda *all: asyncio.run(self.fault(*all)), kind, row, addr))
                    for kind in KINDS for row, addr in (rows if kind is gothrottle else [])]
            self.ran(runs)
            self.ran([("aio", row["name"], pool.submit(lambda *all: asyncio.run(self.fault(*all)), gothrottle.aio, row, addr))
                      for row, addr in rows])
        _wire.LOG.setLevel("NOTSET")

    def ran(self, runs):
        for *name, future in runs:
            with self.subTest(name):
                future.result()

    async def fault(self, kind, row, addr):
        faults = redis.Redis.from_url(f"redis://{addr}")  # DEBUG frees its connection of faults
        debug = lambda words: faults.execute_command("DEBUG", *words.split())
        debug("FAULT NONE")
        async with block(kind.connect(f"redis://{addr}", timeout=1)) as limits:
            daily = limits.quota(kind.__name__, 100, "1d")

            async def decides():
                try:
                    return await done(daily.peek("k"))
                except gothrottle.Error:
                    return None

            await done(daily.allow("k"))
            debug(row["debug"])
            try:
                await done(daily.allow("k"))
                said = "decided"
            except gothrottle.UnavailableError:
                said = "unavailable"
            except (gothrottle.NoModuleError, gothrottle.ParamsError):
                said = "fault"
            self.assertIn(row["answer"], (said, "either"))
            debug("FAULT NONE")
            await until("the server decides", decides)
            await asyncio.sleep(0.1)
            took = 99 - (await until_value(decides)).remaining
            self.assertTrue(row["taken"][0] <= took <= row["taken"][1], f"{took} units were taken")

    def test_fallbacks(self):
        cause = gothrottle.UnavailableError("away")
        limits, _ = faked(cause, fail_closed=True)
        said = limits.rate("a", per_minute=5).allow("bob")
        self.assertEqual((said.allowed, said.source, said.status, said.headers, said.cause),
                         (False, "failed-closed", 503, {"Retry-After": "1"}, cause))
        said = limits.rate("a", per_minute=5, fail_open=True).allow("bob", 3)
        self.assertEqual((said.allowed, said.source, said.status, said.headers, said.granted), (True, "failed-open", 200, {}, 3))
        local = faked(cause, fail_local=0.4)[0]
        five = local.rate("a", per_minute=5)
        self.assertEqual([(r.allowed, r.limit) for r in (five.allow("bob") for _ in range(3))], [(True, 2), (True, 2), (False, 2)])
        all = local.all(five.part("sue"), five.part("ann", 3))
        self.assertEqual((all.allowed, all.decider, all.retry_after, [r.allowed for r in all.each]), (False, 1, gothrottle.NEVER, [True, False]))
        self.assertEqual(five.allow("sue").remaining, 1)  # nothing was taken
        jobs = local.slots("jobs", 1, ttl="1h")
        with jobs.lease("x") as lease:
            self.assertEqual((lease.allowed, jobs.lease("x").allowed), (True, False))
        self.assertTrue(jobs.lease("x").allowed)
        limits, sent = faked(cause)
        self.assertRaises(gothrottle.UnavailableError, limits.slots("a", 1, ttl="1h").lease, "bob")
        for thread in threading.enumerate():
            if thread.name == "gothrottle":
                thread.join()
        self.assertEqual([words[0] for words in sent.words], ["GO.LEASE", "GO.RELEASE"])  # it may have been taken
        plain = faked(cause)[0].rate("a", per_minute=5)
        for call in (plain.allow, plain.peek, plain.refund, plain.wait, plain.reset):
            self.assertRaises(gothrottle.UnavailableError, call, "bob")

    def test_local_decides_as_the_server(self):
        """Random calls to both, at the same times."""
        clients = {url: gothrottle.connect(url, **options, **PATIENT) for url, options in list(SERVERS.items())[:1]}
        limits = clients[f"redis://{ADDR}"]
        for seed in range(60):
            pick, now, local, said = random.Random(seed), 10**12, Local(), [seed]
            limit, period = pick.choice([1, 2, 3, 7]), pick.choice(["7ms", "1s", "60s"])
            by = pick.choice([
                limits.rate("local", per=(pick.choice([1, 3, 7]), period), burst=limit, lockout=pick.choice([None, "3s"])),
                limits.window("local", limit, period, exact=True), limits.quota("local", limit, period), limits.slots("local", limit, period)])
            for _ in range(25):
                holder, n = pick.choice("abcd"), pick.randint(1, 3)
                if by._by.kind == "LEASE":
                    reply = control.execute_command("GO.LEASE", f"local:{seed}", limit, by._by.period, holder, "MS")
                    server = gothrottle._core.read(reply, 1, "", by._of)
                    here = local.take("local", by._by, f"{seed}", 1, now, holder)
                else:
                    server, here = by.allow(f"{seed}", n), local.take("local", by._by, f"{seed}", n, now)
                facts = [(r.allowed, r.limit, r.remaining, r.retry_after, r.reset_after) for r in (server, here)]
                said.append((holder, n, facts[0]))
                self.assertEqual(facts[1], facts[0], (by._by, said))
                ms = pick.choice([0, 0, 1, 3, 150, 1000, 2999, 20001])
                control.execute_command("DEBUG", "ADVANCE", f"{ms}ms")
                now += ms * 1000

    def test_words(self):
        """A limiter's words and keys are the Go client's, but for the quantity 1."""
        limits, sent = faked([0, 1, 1, -1, 0, 1], prefix="p:")
        limits.rate("a", per_minute=5, burst=3, lockout="15m").allow("bob", 2)
        limits.rate("a", per=(5, 0.5)).refund("bob")
        limits.window("b", 7, "1h", exact=True).settle("bob", 3)
        limits.quota("c", 7, "1d", zone="UTC").peek("bob")
        limits.quota("c", 7, "1mo").allow("bob")
        limits.rate("a", per_hour=5).wait("bob", timeout=1.5)
        self.assertEqual([" ".join(map(str, words)) for words in sent.words], [
            "GO.THROTTLE p:a:bob 2 5 60000 2 LOCKOUT 900000 MS", "GO.THROTTLE p:a:bob 4 5 500 -1 UPTO MS",
            "GO.WINDOW p:b:bob 7 3600000 3 FORCE EXACT MS", "GO.QUOTA_RO p:c:bob 7 86400000 0 ALIGN +00:00 MS",
            "GO.QUOTA p:c:bob 7 1mo 1 ALIGN +00:00 MS", "GO.THROTTLE p:a:bob 4 5 3600000 1 RESERVE 1500 MS"])

    def test_wrong_words(self):
        limits = gothrottle.connect("redis://127.0.0.1:1")
        for wrong in (
                lambda: limits.rate("a"), lambda: limits.rate("a", per_second=1, per_minute=1), lambda: limits.rate("a", per_minute=0),
                lambda: limits.rate("", per_minute=1), lambda: limits.rate("a", per=(1, "36500d"), burst=2), lambda: limits.window("a", 1, "1y"),
                lambda: limits.window("a", 1, 0.0001), lambda: limits.window("a", 10**12 + 1, 1), lambda: limits.quota("a", 1, "1d", zone="Utopia"),
                lambda: limits.rate("a", per_minute=1).allow(""), lambda: limits.rate("a", per_minute=1).allow(["bob"]),
                lambda: limits.rate("a", per_minute=1).allow("bob", 0), lambda: limits.rate("a", per_minute=1).allow("bob", 1.5),
                lambda: limits.rate("a", per_minute=1).hold("b{ob", 1), lambda: limits.rate("a", per_minute=1, lockout=1).wait("bob"),
                lambda: limits.all(), lambda: limits.window("a", 1, 1, fail_open=True, fail_local=1.0),
                lambda: gothrottle.connect("http://127.0.0.1"), lambda: gothrottle.connect("redis+sentinel://127.0.0.1"),
                lambda: gothrottle.connect(redis.sentinel.Sentinel([("127.0.0.1", 1)]).master_for("main"))):
            self.assertRaises(gothrottle.ParamsError, wrong)
        with self.assertRaises(TypeError):
            limits.rate("a", per_minute=1, fail_opne=True)

    @each
    async def test_verbs(self, limits):
        tokens = limits.window("tokens", 10, "1h")
        self.assertEqual((await done(tokens.allow("{a}bob", 4))).remaining, 6)
        self.assertEqual([(await done(one)).remaining for one in (tokens.refund("{a}bob", 2), tokens.settle("{a}bob", 3))], [8, 5])
        user = limits.quota("user", 3, "1d", zone="Europe/Berlin")
        for allowed in True, False:
            both = await done(limits.all(tokens.part("{a}bob", 2), user.part("{a}bob", 2)))
            self.assertEqual((both.allowed, len(both.each), both.decider), (allowed, 2, 1))
        await done(tokens.reset("{a}bob"))
        self.assertEqual((await done(tokens.peek("{a}bob"))).remaining, 10)
        self.assertEqual((await done(limits.check())), None)

    def test_wait(self):
        for kind in KINDS:
            asyncio.run(self.wait(kind))

    async def wait(self, kind):
        async with block(kind.connect(f"redis://{ADDR}", prefix=kind.__name__, **PATIENT)) as limits:
            crawl = limits.rate("crawl", per=(1, "100ms"))
            turns = [await done(crawl.wait("x", timeout=20)) for _ in range(3)]  # the server's clock stands still
            late = await done(crawl.wait("x", timeout=0.1))
            self.assertEqual([turn.allowed for turn in [*turns, late]], [True, True, True, False])
            self.assertFalse((await done(crawl.wait("x", 2))).allowed)
            if kind is gothrottle.aio:  # who is cancelled gives the turn back
                before = (await crawl.peek("x")).reset_after
                waits = asyncio.create_task(limits.rate("crawl", per=(1, "100ms")).wait("x"))
                await until("a turn is taken", lambda: taken(crawl, before))
                waits.cancel()
                await until("it is given back", lambda: given(crawl, before))

    def test_ten_thousand(self):
        async def body():
            calls = []
            send = _loop.Calls._replies
            with unittest.mock.patch.object(_loop.Calls, "_replies", lambda self, batch: calls.extend(batch) or send(self, batch)):
                async with gothrottle.aio.connect(f"redis://{ADDR}", **PATIENT) as limits:
                    hot = limits.rate("hot", per_hour=500)
                    results = await asyncio.gather(*(hot.allow("k") for _ in range(10_000)))
                    self.assertEqual(sum(result.allowed for result in results), 500)
                    self.assertTrue(all(result.allowed or result.retry_after == 7.2 for result in results))
                    self.assertLess(len(calls), 10)
                    many = await asyncio.gather(*(hot.allow(f"k{i}") for i in range(1000)))
                    self.assertTrue(all(result.remaining == 499 for result in many))
                    loop = limits._port.loop()
                self.assertEqual((loop.timers, loop.merged, loop.tasks), ({}, {}, set()))
                self.assertEqual(len(asyncio.all_tasks()), 1)
                self.assertFalse([timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()])
                del loop
            return limits

        limits = asyncio.run(body())
        gc.collect()
        self.assertFalse([one for one in gc.get_objects() if isinstance(one, (_loop.Loop, redis.asyncio.Connection))])
        self.assertFalse(len(limits._port._loops))

    def test_callers_that_go(self):
        """Of the callers that are left when a reply comes, as many are admitted as units were granted."""
        for seed in range(100):
            asyncio.run(self.callers_that_go(random.Random(seed)))

    async def callers_that_go(self, pick):
        limits, gates, left = gothrottle.aio.connect("redis://127.0.0.1:1"), [], pick.randint(5, 40)
        hot = limits.quota("gone", 40, "1d")

        async def ask(words, keys=1):
            n, gate = words[4], asyncio.Event()
            asked.append((n, sum(not task.done() for task in tasks)))
            gates.append((n, gate))
            try:
                await gate.wait()
            except asyncio.CancelledError:  # the first caller, who asked alone
                gates.remove((n, gate))
                raise
            granted = min(n, left)
            return [int(granted == 0), 40, 0, -1, 5000, granted]

        limits._port.ask, tasks, asked = ask, [], []
        while True:
            tasks += [asyncio.create_task(hot.allow("k")) for _ in range(pick.randint(0, 9) if left else 0)]
            await asyncio.sleep(0)
            for task in pick.sample(tasks, len(tasks) // 4):
                task.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
            if not gates:
                break
            (n, gate), before = gates.pop(), [task for task in tasks if not task.done()]
            self.assertFalse(gates, "two calls for one key at the same time")
            waiting = len(before) - sum(not one.done() for one in limits._port.loop().merged["gone:k", hot._by])
            gate.set()
            for _ in range(5):
                await asyncio.sleep(0)
            ended = [task.result() for task in before if task.done() and not task.cancelled()]
            self.assertEqual((len(ended), sum(one.allowed for one in ended)), (waiting, min(waiting, n, left)))
            left -= min(n, left)
        self.assertFalse([one for one in asked if one[0] not in (1, one[1])])  # none for those who had gone before

    def test_remembered_denials(self):
        limits, sent = faked([1, 5, 0, 2000, 9000], remember_denials=True)
        limits._port.now = lambda: self.now
        self.now, five = 100.0, limits.rate("a", per_minute=5)
        self.assertEqual((five.allow("bob").source, five.allow("sue").source, five.allow("bob", 2).source), ("server",) * 3)
        self.now += 1.5
        said = five.allow("sue")
        self.assertEqual((said.source, said.retry_after, said.reset_after, said.headers["Retry-After"]), ("denials", 0.5, 7.5, "1"))
        self.assertEqual(limits.rate("a", per_minute=6).allow("sue").source, "server")  # another limit
        for ends in lambda: five.reset("sue"), lambda: setattr(self, "now", self.now + 2):
            ends()
            self.assertEqual([five.allow("sue").source for _ in range(2)], ["server", "denials"])

    @each
    async def test_slots(self, limits):
        jobs = limits.slots("jobs", 1, ttl="1h")
        async with block(jobs.lease("x")) as lease:
            self.assertEqual((lease.allowed, await done(lease.renew()), lease.lost), (True, True, False))
            self.assertFalse((await done(jobs.lease("x"))).allowed)
            await done(jobs.reset("x"))
            self.assertEqual((await done(lease.renew()), lease.lost), (False, True))
            self.assertTrue((await done(jobs.lease("x"))).allowed)  # the late renewal took nothing

    def test_renewals(self):
        for kind in KINDS:
            asyncio.run(self.renewals(kind))
        self.assertEqual([one.name for one in threading.enumerate() if one.name == "gothrottle"], [])

    async def renewals(self, kind):
        async with block(kind.connect(f"redis://{ADDR}", prefix=kind.__name__, **PATIENT)) as limits:
            jobs = limits.slots("renewed", 1, ttl="300ms")
            async with block(jobs.lease("x")) as lease:
                sent = lease._sent
                await until("a renewal", lambda: done_later(lease._sent > sent))
                await done(jobs.reset("x"))
                await until("it is lost", lambda: done_later(lease.lost))
            tokens = limits.quota("held", 10, "1d")
            async with block(tokens.hold("x", 4, ttl="300ms")) as hold:
                sent = hold._sent
                await until("a renewal", lambda: done_later(hold._sent > sent))
            self.assertTrue((await done(tokens.hold("x", 10))).allowed)  # the other was given back
            async with block(kind.connect(f"redis://{ADDR}", prefix=kind.__name__, **PATIENT)) as closed:
                (await done(closed.slots("closed", 1, ttl="1h").lease("x")))._start()
            self.assertTrue((await done(limits.slots("closed", 1, ttl="1h").lease("x"))).allowed)

    @each
    async def test_holds(self, limits):
        tokens = limits.quota("tokens", 10, "1d")
        async with block(tokens.hold("bob", 6)) as hold:
            self.assertEqual((hold.allowed, (await done(tokens.hold("bob", 5))).allowed), (True, False))
            self.assertEqual((await done(hold.settle(7)), (await done(tokens.peek("bob"))).remaining), ("counted", 3))
        lost = await done(tokens.hold("bob", 1))
        lost._id = "another"
        self.assertEqual((await done(lost.settle(1)), (await done(tokens.peek("bob"))).remaining), ("counted", 2))
        lost = await done(tokens.hold("bob", 1))
        lost._id = "another"
        await done(tokens.settle("bob", 5))
        self.assertEqual(await done(lost.settle(1)), "refused")
        with self.assertRaises(gothrottle.ParamsError):
            await done(lost.settle(1))

    def test_settlements_without_a_reply(self):
        """A settlement is repeated until the hold may have lapsed: what its reply then means."""
        away, lost, charged = gothrottle.UnavailableError("away"), [1, 1, 0, -1, 0, 0], [0, 1, 1, -1, 0, 0]
        for replies, said in ([[charged], "counted"], [[away, charged], "counted"], [[away, lost], "counted"], [[away] * 10, "unknown"],
                              [[away] * 3 + [(10, lost)], "unknown"], [[lost, charged, charged], "counted"], [[lost, lost], "refused"]):
            limits, sent = faked(lambda words: self.reply(words, script))
            limits._port.now, limits._port.sleep = lambda: self.now, self.sleep
            self.now, script = 100.0, iter([charged, *replies])
            hold = limits.quota("a", 9, "1d").hold("bob", 3, ttl="1s")
            self.assertEqual(hold.settle(2), said, replies)
            ids = [words[words.index("RELEASE") + 1] for words in sent.words if "RELEASE" in words]
            self.assertLessEqual(len(set(ids)), 2 if lost in replies[:1] else 1)

    def reply(self, words, script):
        reply = next(script)
        if isinstance(reply, tuple):
            self.now += reply[0]
            return reply[1]
        return reply

    async def sleep(self, seconds, cancelled=None):
        self.now += 0.2

    def test_threads(self):
        with gothrottle.connect(f"redis://{ADDR}", **PATIENT) as limits, concurrent.futures.ThreadPoolExecutor(8) as pool:
            hot = limits.window("threads", 100, "1h")
            self.assertEqual(sum(r.allowed for r in pool.map(lambda _: hot.allow("k"), range(400))), 100)

    def test_event_loops(self):
        limits = gothrottle.aio.connect(f"redis://{ADDR}", **PATIENT)

        async def body():
            await limits.quota("loops", 10, "1h").allow("k")
            left = (await limits.quota("loops", 10, "1h").peek("k")).remaining
            await limits.close()
            return left

        self.assertEqual([asyncio.run(body()) for _ in range(3)], [9, 8, 7])

    def test_own_client(self):
        own = redis.Redis.from_url(f"redis://{ADDR}", decode_responses=True)
        with gothrottle.connect(own, **PATIENT) as limits:
            self.assertTrue(limits.quota("own", 1, "1h").allow("k").allowed)

        async def body():
            async with gothrottle.aio.connect(redis.asyncio.Redis.from_url(f"redis://{ADDR}"), **PATIENT) as limits:
                return await limits.quota("own", 1, "1h").allow("k")

        self.assertFalse(asyncio.run(body()).allowed)

    def test_readme(self):
        """The page's lines run as they stand there, one after another."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            here = {}
            for lines in re.findall(r"(?ms)^```python\n(.*?)^```$", README.read_text()):
                exec(lines.replace("127.0.0.1:6379", ADDR), here)
        self.assertEqual(said.getvalue().split(), ["100", "working", "counted"])


async def until_value(f):
    while (value := await f()) is None:
        await asyncio.sleep(0.02)
    return value


async def done_later(value):
    return value


async def taken(limiter, before):
    return (await limiter.peek("x")).reset_after > before


async def given(limiter, before):
    return (await limiter.peek("x")).reset_after <= before


faulthandler.dump_traceback_later(100, exit=True)
unittest.main()
