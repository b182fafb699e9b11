"""The strategies of limits answer the same over this storage as over its own. TestAdapters runs this file."""
import asyncio, inspect, os, pathlib, random, time, unittest, unittest.mock
import flask, flask_limiter, redis
from limits import parse
from limits.aio import strategies as async_strategies
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter
import gothrottle, gothrottle.limits  # makes the schemes known

ITEM = parse("5 per hour")
ADDR, TLS, CA = os.environ["ADDR"], os.environ["TLS"], os.environ["CA"]
PLAIN = redis.Redis.from_url(f"redis://{ADDR}")
NETWORK = redis.Redis.from_url(f"redis://{os.environ['CLUSTER']}")
STORAGES = {  # what they need beside the URI, and a server that has their clock
    f"gothrottle://{ADDR}/0": ({}, PLAIN),
    f"gothrottles://{TLS}": ({"ssl_ca_certs": CA}, redis.Redis.from_url(f"rediss://{TLS}", ssl_ca_certs=CA)),
    f"gothrottle+sentinel://{os.environ['SENTINEL']}/main": ({}, NETWORK),
    f"gothrottle+cluster://{os.environ['CLUSTER']}": ({}, NETWORK),
    f"gothrottle://{os.environ['BARE']}": ({"script": True}, redis.Redis.from_url(f"redis://{os.environ['BARE']}")),  # no module
    f"gothrottle+cluster://{os.environ['CLUSTER']}/": ({"script": pathlib.Path(os.environ["SCRIPT"]).read_text()}, NETWORK),
}
PATIENT = {"timeout": 20}  # decisions are tested, on machines that may be slow


async def done(result):  # of either kind of storage
    return await result if inspect.isawaitable(result) else result


class Storage(unittest.TestCase):
    def setUp(self):
        self.now = 1.7e9 + 0.5
        self.enterContext(unittest.mock.patch("time.time", lambda: self.now))

    def advance(self, clock, seconds):
        self.now += seconds
        clock.execute_command("DEBUG", "ADVANCE", f"{seconds}s")

    def test_strategies(self):
        for uri, (options, clock) in STORAGES.items():
            for prefix, module in ("", __import__("limits.strategies").strategies), ("async+", async_strategies):
                with self.subTest(prefix + uri):
                    asyncio.run(self.strategies(module, prefix + uri, options, clock))

    async def strategies(self, module, uri, options, clock):
        storage = storage_from_string(uri, **options, **PATIENT)
        await done(storage.reset())
        for seed in range(5):
            for own in FixedWindowRateLimiter, MovingWindowRateLimiter:
                ours, memory = getattr(module, own.__name__)(storage), MemoryStorage()
                await self.agree(ours, own(memory), clock, f"{own.__name__} {seed}")
        self.assertTrue(await done(storage.check()))

    async def agree(self, ours, own, clock, user):
        """Wants the answers of limits' own storage to random calls, but for the differences that README.md lists."""
        pick, said, moving, denied, until = random.Random(user), [user], "Moving" in user, 0, 0
        for _ in range(25):
            verb, cost = pick.choice(["hit", "hit", "hit", "look", "look", "clear"]), pick.randint(1, 6)
            if verb == "hit":
                answer = await done(ours.hit(ITEM, user, cost=cost))
                want = not (moving and cost > ITEM.amount) and own.hit(ITEM, user, cost=cost)
                denied, until = (0 if want or not moving else cost), self.now + 3600
            elif verb == "look":
                reset, *answer = *await done(ours.get_window_stats(ITEM, user)), await done(ours.test(ITEM, user))
                latest, left = own.get_window_stats(ITEM, user)
                left = 0 if left < denied and self.now < until else left
                want = [left, left > 0]
                if moving:
                    self.assertTrue(self.now - 1 < reset <= (self.now + 3600 if left else latest), said)
                else:
                    self.assertEqual(reset, latest, said)
            else:
                answer, want, denied = await done(ours.clear(ITEM, user)), own.clear(ITEM, user), 0
            said.append((verb, cost, want))
            self.assertEqual(answer, want, said)
            if 0 < denied <= ITEM.amount and verb == "hit":  # it fits from the reset on
                reset = (await done(ours.get_window_stats(ITEM, user)))[0]
                for seconds, allowed in (int(reset - self.now) - 1, False), (3, True):
                    self.advance(clock, max(0, seconds))
                    hits = [await done(ours.hit(ITEM, user, cost=cost)), own.hit(ITEM, user, cost=cost)]
                    self.assertEqual(hits, [allowed] * 2, said)
                denied = 0
            self.advance(clock, pick.choice([0, 0, 0, 0, 997, 1409, 3601]))

    def flask(self, user, **limit):
        """Returns a function that sends requests of a user to a service, and returns their statuses."""
        app = flask.Flask("app")
        limiter = flask_limiter.Limiter(lambda: user, app=app, storage_uri=f"gothrottle://{ADDR}", strategy="moving-window",
                                        storage_options=PATIENT, in_memory_fallback_enabled=True)
        app.route("/")(limiter.limit("5 per hour", **limit)(lambda: "hello"))
        return lambda times=1: [app.test_client().get("/").status_code for _ in range(times)]

    def test_deduct_when(self):
        for cost, statuses in (2, [200, 200, 200, 429, 429]), (6, [200, 429, 429]):
            get = self.flask(f"cost {cost}", cost=cost, deduct_when=lambda response: True)
            self.assertEqual(get(len(statuses)), statuses)
            self.advance(PLAIN, 3601)
            self.assertEqual(get(), [200])

    def test_lost_reply(self):
        get = self.flask("lost")
        self.assertEqual(get(), [200])
        PLAIN.execute_command("DEBUG", "CUTAFTER", "1")
        for statuses in [200], [200, 200, 200, 429]:  # the fallback answers, and from the next check on the server
            self.now += 100
            self.assertEqual(get(len(statuses)), statuses)

    def test_keys_of_other_storages(self):
        storage = storage_from_string(f"gothrottle://{ADDR}")
        FixedWindowRateLimiter(storage).hit(ITEM, "keys of")
        keys = list(redis.Redis.from_url(f"redis://{ADDR}").scan_iter("*keys of*"))
        self.assertEqual(keys, [b"gothrottle:limits:" + ITEM.key_for("keys of").encode()])  # others begin with LIMITER

    def test_nothing_is_allowed(self):
        storage = storage_from_string(f"gothrottle://{ADDR}")
        limiter = MovingWindowRateLimiter(storage)
        for allowed in parse("0 per hour"), parse("2 per hour"):
            verdicts = [limiter.hit(allowed, "zoe"), limiter.test(allowed, "zoe"), limiter.get_window_stats(allowed, "zoe")[1]]
            self.assertEqual(verdicts, [allowed.amount > 0, allowed.amount > 0, max(0, allowed.amount - 1)])

    def test_options(self):
        shop, blog = (storage_from_string(f"gothrottle://{ADDR}", key_prefix=name) for name in ("shop:", "blog:"))
        self.assertEqual([shop.incr("bob", 60), blog.incr("bob", 60), shop.incr("bob", 60)], [1, 1, 2])
        storage_from_string(f"gothrottle://{ADDR}", key_prefix="[bs]*").reset()  # its own keys, and it has none
        self.assertEqual([shop.reset(), shop.reset(), blog.get("bob")], [1, 0, 1])
        with self.assertLogs("gothrottle"), self.assertRaisesRegex(gothrottle.Error, "AUTH"):  # so the password was sent
            storage_from_string(f"gothrottle://{ADDR}", password="wrong").incr("bob", 60)
        with self.assertRaises(TypeError):
            storage_from_string(f"gothrottle://{ADDR}", sokcet_timeout=1).incr("bob", 60)
        pool = redis.ConnectionPool.from_url(f"redis://{ADDR}")
        storage_from_string("gothrottle://127.0.0.1:1", connection_pool=pool).incr("sue", 60)
        self.assertEqual(storage_from_string(f"gothrottle://{ADDR}").get("sue"), 1)
        with self.assertLogs("gothrottle"), self.assertRaisesRegex(gothrottle.Error, "DB index"):  # a server in memory has one
            storage_from_string(f"gothrottle://{ADDR}", db=1).get("sue")

    def test_addresses(self):
        nodes, path, options = gothrottle._redis._parts("bob:p%40ss@[::1]:7000,localhost/name", 26379, {})
        self.assertEqual((nodes, path), ([("::1", 7000), ("localhost", 26379)], "name"))
        self.assertEqual(options, {"username": "bob", "password": "p@ss"})

    def test_client_is_shown(self):
        self.assertIn(ADDR.rpartition(":")[2], str(storage_from_string(f"gothrottle://{ADDR}").storage))

    def test_silent_node(self):
        for prefix in "", "async+":
            with self.subTest(prefix):
                asyncio.run(self.silent_node(storage_from_string(f"{prefix}gothrottle+cluster://{os.environ['CLUSTER']}", timeout=3)))

    async def silent_node(self, storage):
        await done(storage.incr("bob", 60))
        faults = redis.cluster.RedisCluster.from_url(f"redis://{os.environ['CLUSTER']}")
        node = faults.get_node_from_key(storage.key_prefix + "bob").redis_connection
        node.execute_command("DEBUG", "FAULT", "SILENT")  # a call waits for its 3 s, as long as a busy machine may need for the others
        with self.assertRaises(gothrottle.Error):
            await done(storage.incr("bob", 60))
        node.execute_command("DEBUG", "FAULT", "NONE")
        hits = [await done(storage.incr("bob", 60)) for _ in range(20)]
        self.assertIn(hits[-1] - hits[0], (19, 20))  # the one that had no reply may run meanwhile, once

    def test_away(self):
        for kind in "", "s", "+sentinel", "+cluster", "+unix":
            for uri in f"gothrottle{kind}://127.0.0.1:1/main", f"async+gothrottle{kind}://127.0.0.1:1/main":
                with self.subTest(uri):  # a storage of a server that is unavailable can be made
                    async def check(): return await done(storage_from_string(uri).check())
                    self.assertFalse(asyncio.run(check()))


unittest.main()
