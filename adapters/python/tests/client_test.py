"""The client, for threads and for asyncio, on servers in memory with faults. TestAdapters runs this file."""
import asyncio, concurrent.futures, contextlib, faulthandler, gc, inspect, io, json, os, pathlib, random, re, threading, time, unittest, unittest.mock
import gothrottle, gothrottle.aio, redis, redis.asyncio, redis.sentinel
from gothrottle import _loop, _port
from gothrottle._local import Local

ADDR, BARE, CLUSTER = (os.environ[name] for name in ("ADDR", "BARE", "CLUSTER"))
FAULTS, THREADS = pathlib.Path(os.environ["FAULTS"]), concurrent.futures.ThreadPoolExecutor(256)
SERVERS = {f"redis://{ADDR}": {}, f"redis://{BARE}": {"script": True}, f"redis+cluster://{CLUSTER}": {}}
KINDS = gothrottle, gothrottle.aio
PATIENT = {"timeout": 20}  # decisions are tested, on machines that may be slow
control = redis.Redis.from_url(f"redis://{ADDR}")


async def done(result):  # of either kind
    return await result if inspect.isawaitable(result) else result


@contextlib.asynccontextmanager
async def block(held):  # with or async with
    async with contextlib.AsyncExitStack() as stack:
        yield await stack.enter_async_context(held) if hasattr(held, "__aenter__") else stack.enter_context(held)


async def until(what, f):  # returns what f returns, once that is something
    for _ in iter(lambda end=time.time() + 30: time.time() < end, False):
        if found := await done(f()):
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"not within 30 s: {what}")


def each(test):
    """Makes a test of a coroutine: for both kinds, on each server."""
    def run(self):
        for kind in KINDS:
            for url, options in SERVERS.items():
                with self.subTest(kind.__name__ + url):
                    connect = lambda: kind.connect(url, prefix=f"{test.__name__}{kind.__name__}:", **options, **PATIENT)

                    async def body():
                        async with block(connect()) as limits:
                            limits.again, limits.url = connect, url
                            await test(self, limits)
                    asyncio.run(body())
                    self.assertFalse(connected())
    return run


def connected():
    """Returns the connections that clients have."""
    gc.collect()
    own = control.connection_pool._available_connections
    return [one for one in gc.get_objects() if isinstance(one, redis.asyncio.Connection) and one.is_connected
            or isinstance(one, redis.Connection) and one._sock and one not in own]


POLICIES = {"unavailable": {}, "failed-open": {"fail_open": True}, "failed-closed": {"fail_closed": True}, "failed-local": {"fail_local": 1.0}}
VERBS = {
    "allow": lambda limits, name, o: limits.window(name, 9, "1d", **o).allow("k"),
    "wait": lambda limits, name, o: limits.rate(name, per=(9, "1d"), **o).wait("k"),
    "lease": lambda limits, name, o: limits.slots(name, 9, "1s", **o).lease("k"),
    "hold": lambda limits, name, o: limits.hold(*(limits.quota(name + one, 9, "1d", **o).part("{k}") for one in "ab"), ttl="1s"),
    "refund": lambda limits, name, o: limits.quota(name, 9, "1d", **o).refund("k"),
}


async def ask(limits, verb, *all):  # from a thread, if that would stop the event loop
    if isinstance(limits, gothrottle.aio.Limits):
        return await done(verb(*all))
    return await asyncio.get_running_loop().run_in_executor(THREADS, verb, *all)


async def answer(limits, verb, *all):
    """Returns who decided, or why nobody did. What is held is given back."""
    try:
        result = await ask(limits, verb, *all)
    except gothrottle.UnavailableError:
        return "unavailable"
    except (gothrottle.NoModuleError, gothrottle.ParamsError):
        return "fault"
    if isinstance(result, str):  # settled
        return result
    if hasattr(result, "release"):
        await ask(limits, result.release)
    found = getattr(result, "result", result)
    assert (found.allowed, found.status, "Retry-After" in found.headers) == ((False, 503, True) if found.source == "failed-closed" else (True, 200, False))
    return "decided" if found.source == "server" else found.source


async def every(limits):
    """Calls each verb of each policy, all at the same time."""
    rows = [(name, policy) for name in VERBS for policy in POLICIES]
    said = await asyncio.gather(*(answer(limits, VERBS[name], limits, name + policy, POLICIES[policy]) for name, policy in rows))
    return [(*row, one) for row, one in zip(rows, said)]


def faked(reply, **options):
    """Returns limits of a server that replies what is given, and the words that it gets."""
    limits, sent = gothrottle.connect("redis://127.0.0.1:1", **options), []

    async def ask(words, more=(), undo=None):
        sent.append(words)
        found = reply(words) if callable(reply) else reply
        if isinstance(found, Exception):
            raise found
        return found

    limits._port.ask = ask
    return limits, sent


class Client(unittest.TestCase):
    def test_faults(self):
        """Each verb of each policy during each fault, all at the same time: the policy decides, and afterwards the server."""
        rows = list(zip(json.loads(FAULTS.read_text()), os.environ["SERVERS"].split()))
        _port.LOG.setLevel("CRITICAL")  # that each outage is logged once is tested by the programs
        for kind in KINDS:
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                runs = [(row["name"], pool.submit(lambda *all: asyncio.run(self.fault(*all)), kind, row, addr)) for row, addr in rows]
            for name, future in runs:
                with self.subTest(kind.__name__ + " " + name):
                    future.result()
        _port.LOG.setLevel("NOTSET")
        self.assertEqual([one.name for one in threading.enumerate() if one.name == "gothrottle"], [])
        self.assertFalse(connected())

    async def fault(self, kind, row, addr):
        faults = redis.Redis.from_url(f"redis://{addr}")  # DEBUG frees its connection of faults
        debug = lambda words: faults.execute_command("DEBUG", *words.split())
        debug("FAULT NONE")
        async with block(kind.connect(f"redis://{addr}", timeout=1, prefix=kind.__name__)) as limits:
            daily, levels = limits.quota("daily", 100, "1d"), [limits.window("user", 9, "1d"), limits.quota("team", 99, "1d")]

            async def left(limiter=daily, key="k"):
                with contextlib.suppress(gothrottle.Error):
                    return await done(limiter.peek(key))

            await done(daily.allow("k"))
            holds = {ttl: await done(limits.hold(*(one.part(f"{{{ttl}}}", 3) for one in levels), ttl=ttl)) for ttl in ("600ms", "1m")}
            debug(row["debug"])
            self.assertIn(row["answer"], (await answer(limits, daily.allow, "k"), "either"))
            settled = [asyncio.create_task(answer(limits, hold.settle, 4)) for hold in holds.values()]
            passes = row["debug"].split()[0] in ("CUTBEFORE", "CUTAFTER", "RESTART", "STALL", "HALFOPEN") or row["answer"] == "decided"
            for name, policy, said in [] if "SLOW" in row["debug"] else await every(limits):  # it goes on for as long as calls wait
                want = row["answer"] if row["answer"] != "unavailable" or name == "refund" else policy
                self.assertTrue(said == want or passes and said in ("decided", policy, "unavailable" * (name == "refund")), (name, policy, said))
            debug("FAULT NONE")
            await until("the server decides", left)
            await asyncio.sleep(0.1)
            took = 99 - (await until("a reply", left)).remaining
            self.assertTrue(row["taken"][0] <= took <= row["taken"][1], f"{took} units were taken")
            self.assertEqual({said for *_, said in await every(limits)}, {"decided"})
            for ttl, task in zip(holds, settled):  # each level is charged once, or none
                said, charged = await task, [limit - (await done(one.peek(f"{{{ttl}}}"))).remaining for one, limit in zip(levels, (9, 99))]
                self.assertIn(charged, {"counted": [[4, 4]], "unknown": [[0, 0], [4, 4]], "fault": [[0, 0]]}[said])
                self.assertTrue(said != "unknown" or ttl != "1m" or row["answer"] == "fault", said)

    def test_fallbacks(self):
        local, _ = faked(gothrottle.UnavailableError("away"), fail_local=0.4)
        five = local.rate("a", per_minute=5)
        self.assertEqual([(r.allowed, r.limit) for r in (five.allow("bob") for _ in range(3))], [(True, 2), (True, 2), (False, 2)])
        all = local.all(five.part("sue"), five.part("ann", 3))
        self.assertEqual((all.allowed, all.decider, all.retry_after, [r.allowed for r in all.each]), (False, 1, gothrottle.NEVER, [True, False]))
        self.assertEqual(five.allow("sue").remaining, 1)  # nothing was taken
        jobs, tokens = local.slots("jobs", 1, ttl="1h"), local.quota("tokens", 25, "1d")
        with jobs.lease("x") as lease:
            for later in 0, 2400, 4800:  # it lasts for as long as it's renewed
                local._port.now = lambda: lease._deadline - 8_640_000 + later
                self.assertEqual((lease.renew(), jobs.lease("x").allowed), (True, False))
        self.assertTrue(jobs.lease("x").allowed)
        for one, left in (tokens, 4), (five, 0):  # held in this process, and settled there
            with one.hold("ann", 2) as hold, one.hold("ann", 1):
                self.assertEqual((hold.settle(1), hold.ticket), ("counted", ""))
            self.assertEqual(one.allow("ann", 5 if one is tokens else 1).remaining, left)
        limits, sent = faked(gothrottle.UnavailableError("away"))
        self.assertRaises(gothrottle.UnavailableError, limits.slots("a", 1, ttl="1h").lease, "bob")
        limits.close()
        self.assertEqual([words[0] for words in sent], ["GO.LEASE", "GO.RELEASE"])  # it may have been taken

    def test_local_decides_as_the_server(self):
        """Random calls to both, at the same times."""
        limits = gothrottle.connect(f"redis://{ADDR}", **PATIENT)
        for seed in range(60):
            pick, now, local, said = random.Random(seed), 10**12, Local(), [seed]
            limit, period = pick.choice([1, 2, 3, 7]), pick.choice(["7ms", "1s", "60s"])
            by = pick.choice([
                limits.rate("local", per=(pick.choice([1, 3, 7]), period), burst=limit, lockout=pick.choice([None, "3s"])),
                limits.window("local", limit, period, exact=True), limits.quota("local", limit, period), limits.slots("local", limit, period)])
            for _ in range(25):
                holder, n = pick.choice("abcd"), pick.randint(1, 3)
                slot = by._by.kind == "LEASE"
                server = limits.all(by.part(f"{seed}", holder)) if slot else by.allow(f"{seed}", n)
                here = local.take("local", by._by, f"{seed}", 1 if slot else n, now, holder * slot)
                facts = [(r.allowed, r.limit, r.remaining, r.retry_after, r.reset_after) for r in (server, here)]
                said.append((holder, n, facts[0]))
                self.assertEqual(facts[1], facts[0], (by._by, said))
                ms = pick.choice([0, 0, 1, 3, 150, 1000, 2999, 20001])
                control.execute_command("DEBUG", "ADVANCE", f"{ms}ms")
                now += ms * 1000

    def test_wrong_words(self):
        limits = gothrottle.connect("redis://127.0.0.1:1")
        five = limits.rate("a", per_minute=5)
        for wrong in (
                lambda: limits.rate("a"), lambda: limits.rate("a", per_second=1, per_minute=1), lambda: limits.rate("a", per_minute=0),
                lambda: limits.rate("", per_minute=1), lambda: limits.rate("a", per=(1, "36500d"), burst=2), lambda: limits.window("a", 1, "1y"),
                lambda: limits.window("a", 1, 0.0001), lambda: limits.window("a", 10**12 + 1, 1), lambda: limits.quota("a", 1, "1d", zone="Utopia"),
                lambda: five.allow(""), lambda: five.allow(["bob"]), lambda: five.allow("bob", 0), lambda: five.allow("bob", 1.5),
                lambda: five.hold("b{ob", 1), lambda: limits.hold(), lambda: limits.hold(limits.slots("a", 1, 1).part("bob", "x")),
                lambda: limits.slots("a", 1, 1).part("bob", ""), lambda: limits.rate("a", per_minute=1, lockout=1).wait("bob"),
                lambda: limits.all(), lambda: limits.window("a", 1, 1, fail_open=True, fail_local=1.0),
                lambda: gothrottle.connect("http://127.0.0.1"), lambda: gothrottle.connect("redis+sentinel://127.0.0.1"),
                lambda: gothrottle.connect(redis.sentinel.Sentinel([("127.0.0.1", 1)]).master_for("main")),
                lambda: gothrottle.connect(redis.asyncio.Redis()), lambda: gothrottle.aio.connect(redis.Redis())):
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
        self.assertTrue(await done(limits.check()))
        if "cluster" in limits.url:
            with self.assertRaises(gothrottle.ParamsError), self.assertLogs("gothrottle", "ERROR"):
                await done(limits.all(tokens.part("x"), tokens.part("y")))

    @each
    async def test_wait(self, limits):
        crawl = limits.rate("crawl", per=(1, "100ms"))
        turns = [await done(crawl.wait("x", timeout=20)) for _ in range(3)]  # the server's clock stands still
        late = [await done(crawl.wait("x", timeout=0.1)), await done(crawl.wait("x", 2))]
        self.assertEqual([turn.allowed for turn in [*turns, *late]], [True, True, True, False, False])
        if isinstance(limits, gothrottle.aio.Limits):  # who is cancelled gives the turn back
            async def given(taken=False): return ((await crawl.peek("x")).reset_after > before) == taken
            for early in False, True:  # also before the reply
                before, waits = (await crawl.peek("x")).reset_after, asyncio.create_task(crawl.wait("x"))
                await (asyncio.sleep(0) if early else until("a turn is taken", lambda: given(True)))
                waits.cancel()
                await asyncio.sleep(0.1)
                await until("it is given back", given)

    def test_ten_thousand(self):
        async def body():
            calls, send = [], _loop.Calls._replies
            with unittest.mock.patch.object(_loop.Calls, "_replies", lambda self, batch: calls.extend(batch) or send(self, batch)):
                async with gothrottle.aio.connect(f"redis://{ADDR}", **PATIENT) as limits:
                    hot = limits.rate("hot", per_hour=500)
                    results = await asyncio.gather(*(hot.allow("k") for _ in range(10_000)))
                    self.assertEqual([sum(r.allowed for r in results), {r.retry_after for r in results}], [500, {0, 7.2}])
                    self.assertLess(len(calls), 10)
                    many = await asyncio.gather(*(hot.allow(f"k{i}") for i in range(1000)))
                    self.assertTrue(all(result.remaining == 499 for result in many))
                self.assertEqual((len(asyncio.all_tasks()), len(limits._port._loops)), (1, 0))
                self.assertFalse([timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()])

        asyncio.run(body())
        self.assertFalse(connected())

    def test_callers_that_go(self):
        """Of the callers that are left when a reply comes, as many are admitted as units were granted."""
        for seed in range(100):
            asyncio.run(self.callers_that_go(random.Random(seed)))

    async def callers_that_go(self, pick):
        limits, gates, left = gothrottle.aio.connect("redis://127.0.0.1:1"), [], pick.randint(5, 40)
        hot = limits.quota("gone", 40, "1d")

        async def ask(words, more=()):
            n, gate = words[4], asyncio.Event()
            await asyncio.sleep(0)  # until those whose results are there have ended
            asked.append((n, sum(not task.done() for task in tasks)))
            gates.append((n, gate))
            try:
                await gate.wait()
            finally:
                gates[:] = [one for one in gates if one[1] is not gate]
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
            (n, gate), before = gates[0], [task for task in tasks if not task.done()]
            self.assertEqual(len(gates), 1, "two calls for one key at the same time")
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
        self.assertEqual((said.source, said.retry_after, said.reset_after), ("denials", 0.5, 7.5))
        self.assertEqual(limits.rate("a", per_minute=6).allow("sue").source, "server")  # another limit
        for ends in lambda: five.reset("sue"), lambda: setattr(self, "now", self.now + 2):
            ends()
            self.assertEqual([five.allow("sue").source for _ in range(2)], ["server", "denials"])

    @each
    async def test_renewals(self, limits):
        jobs = limits.slots("renewed", 1, ttl="300ms")
        async with block(jobs.lease("x")) as lease:
            sent = lease._sent
            await until("a renewal", lambda: lease._sent > sent)
            self.assertEqual((await done(lease.renew()), (await done(jobs.lease("x"))).allowed, lease.lost), (True, False, False))
            await done(jobs.reset("x"))
            await until("it is lost", lambda: lease.lost)
            self.assertEqual((await done(lease.renew()), (await done(jobs.lease("x"))).allowed), (False, True))  # no renewal took it
        tokens = limits.quota("held", 10, "1d")
        async with block(limits.hold(tokens.part("{a}x", 4), tokens.part("{a}y", 4), ttl="300ms")) as hold:
            sent = hold._sent
            await until("a renewal", lambda: hold._sent > sent)
        self.assertTrue((await done(tokens.hold("{a}y", 10))).allowed)  # the other was given back
        async with block(limits.again()) as closed:
            (await done(closed.slots("closed", 1, ttl="1h").lease("x")))._start()
        self.assertTrue((await done(limits.slots("closed", 1, ttl="1h").lease("x"))).allowed)

    @each
    async def test_holds(self, limits):
        tokens = limits.quota("tokens", 10, "1d")
        async with block(tokens.hold("bob", 6)) as hold:
            self.assertEqual((hold.allowed, (await done(tokens.hold("bob", 5))).allowed), (True, False))
            self.assertEqual((await done(hold.settle(7)), (await done(tokens.peek("bob"))).remaining), ("counted", 3))
        for difference, said in (0, "counted"), (5, "refused"):
            lost = await done(tokens.hold("bob", 1))
            lost._id, now = "another", (await done(tokens.settle("bob", difference))).remaining
            self.assertEqual((await done(lost.settle(1)), (await done(tokens.peek("bob"))).remaining), (said, max(now - 1, 0)))
        with self.assertRaises(gothrottle.ParamsError):
            await done(lost.settle(1))
        user, team = levels = limits.quota("user", 100, "1d"), limits.rate("team", per=(100, "1d"))
        parts = [one.part("{a}bob", 60) for one in levels]
        hold = await done(limits.hold(*parts))
        self.assertFalse((await done(team.hold("{a}bob", 41))).allowed)
        denied = await done(limits.hold(user.part("{a}bob", 1), team.part("{a}bob", 41)))
        self.assertEqual((denied.allowed, denied.result.of[0], denied.ticket), (False, "team", ""))
        resumed = [limits.resume(hold.ticket, *parts) for _ in range(2)]
        self.assertEqual([await done(one.settle(70)) for one in resumed], ["counted"] * 2)  # by the first
        self.assertEqual([(await done(one.peek("{a}bob"))).remaining for one in levels], [30, 30])
        self.assertEqual(await done(limits.resume("", *parts).settle(5)), "counted")
        hold = await done(limits.hold(*[one.part("{a}bob", 25) for one in levels]))
        self.assertTrue(await done(limits.resume(hold.ticket, *parts).release()))
        self.assertEqual((await done(hold.renew()), hold.lost), (False, True))

    def test_tickets(self):
        limits = gothrottle.connect("redis://127.0.0.1:1")
        with self.assertRaises(gothrottle.UnavailableError) as refused:
            limits.quota("a", 1, "1d").allow("bob")
        self.assertFalse(refused.exception.sent)  # so a settlement that ends like this hasn't charged
        for row in json.loads(FAULTS.with_name("tickets.json").read_text()):
            with contextlib.nullcontext() if "id" in row else self.assertRaises(gothrottle.ParamsError):
                hold = limits.resume(row["ticket"], limits.quota("a", 1, "1d").part("bob"))
                self.assertEqual((hold.ticket, hold._id), (row["ticket"], row["id"]))

    def test_threads(self):
        with gothrottle.connect(f"redis://{ADDR}", max_connections=2, **PATIENT) as limits:
            self.assertEqual(sum(THREADS.map(lambda _: limits.window("threads", 100, "1h").allow("k").allowed, range(400))), 100)

    def test_own_client(self):
        own = gothrottle.connect(redis.Redis.from_url(f"redis://{ADDR}", decode_responses=True), **PATIENT)
        limits = gothrottle.aio.connect(redis.asyncio.Redis.from_url(f"redis://{ADDR}"), **PATIENT)

        async def body():  # the end of the event loop closes what it used
            return (await limits.quota("own", 9, "1h").allow("k")).remaining

        self.assertEqual([own.quota("own", 9, "1h").allow("k").remaining, *(asyncio.run(body()) for _ in range(2))], [8, 7, 6])
        own.close()
        self.assertFalse(connected())

    def test_readme(self):
        """The page's lines run as they stand there, one after another."""
        said, here = io.StringIO(), {}
        with contextlib.redirect_stdout(said):
            for lines in re.findall(r"(?ms)^```python\n(.*?)^```$", pathlib.Path(__file__).parents[1].joinpath("README.md").read_text()):
                exec(lines.replace("127.0.0.1:6379", ADDR), here)
        self.assertEqual(said.getvalue().split(), ["429", "900", "working", "counted"])


faulthandler.dump_traceback_later(100, exit=True)
unittest.main()
