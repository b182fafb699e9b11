"""The strategies of limits answer the same over this storage as over its own. TestAdapters runs this file."""
import asyncio, inspect, os, pathlib, time, unittest
import redis
from limits import parse
from limits.aio import strategies as async_strategies
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter
import gothrottle_limits  # makes the schemes known

ITEM = parse("5 per hour")
ADDR, TLS, CA = os.environ["ADDR"], os.environ["TLS"], os.environ["CA"]
STORAGES = {  # what they need beside the URI
    f"gothrottle://{ADDR}/0": {},
    f"gothrottles://{TLS}": {"ssl_ca_certs": CA},
    f"gothrottle+sentinel://{os.environ['SENTINEL']}/main": {},
    f"gothrottle+cluster://{os.environ['CLUSTER']}": {},
}
STORAGES[f"gothrottle://{os.environ['BARE']}"] = {"script": True}  # has no module
STORAGES[f"gothrottle+cluster://{os.environ['CLUSTER']}/"] = {"script": pathlib.Path(os.environ["SCRIPT"]).read_text()}
for options in STORAGES.values():
    options.update(socket_timeout=20, socket_connect_timeout=20)  # decisions are tested, on machines that may be slow
NAMES = "FixedWindowRateLimiter", "MovingWindowRateLimiter"


async def done(result):  # of either kind of storage
    return await result if inspect.isawaitable(result) else result


async def life(limiter, user):
    async def hit(cost=1, user=user):
        return [await done(limiter.hit(ITEM, user, cost=cost)), await done(limiter.test(ITEM, user)),
                (await done(limiter.get_window_stats(ITEM, user)))[1]]
    verdicts = [await hit(), await hit(2), await hit(), await hit(), await hit(), await hit(user="not " + user)]
    reset = (await done(limiter.get_window_stats(ITEM, user)))[0] - time.time()
    await done(limiter.clear(ITEM, user))
    return verdicts + [await done(limiter.test(ITEM, user)), await hit()], reset


class Storage(unittest.TestCase):
    def test_strategies(self):
        for uri, options in STORAGES.items():
            for prefix, module in ("", __import__("limits.strategies").strategies), ("async+", async_strategies):
                with self.subTest(prefix + uri):
                    asyncio.run(self.strategies(module, prefix + uri, options))

    async def strategies(self, module, uri, options):
        storage = storage_from_string(uri, **options)
        await done(storage.reset())
        for name in NAMES:
            verdicts, reset = await life(getattr(module, name)(storage), name)
            like = FixedWindowRateLimiter if name == NAMES[0] else MovingWindowRateLimiter
            self.assertEqual(verdicts, (await life(like(MemoryStorage()), name))[0])
            self.assertTrue(3500 < reset <= 3601, reset)
        self.assertEqual(await done(storage.reset()), 4)
        self.assertTrue(await done(storage.check()))

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
        with self.assertLogs("gothrottle"), self.assertRaisesRegex(redis.RedisError, "AUTH"):  # so the password was sent
            storage_from_string(f"gothrottle://{ADDR}", password="wrong").incr("bob", 60)
        with self.assertRaises(TypeError):
            storage_from_string(f"gothrottle://{ADDR}", sokcet_timeout=1).incr("bob", 60)
        pool = redis.ConnectionPool.from_url(f"redis://{ADDR}")
        storage_from_string("gothrottle://127.0.0.1:1", connection_pool=pool).incr("sue", 60)
        self.assertEqual(storage_from_string(f"gothrottle://{ADDR}").get("sue"), 1)
        with self.assertLogs("gothrottle"), self.assertRaisesRegex(redis.RedisError, "DB index"):  # a server in memory has one
            storage_from_string(f"gothrottle://{ADDR}", db=1).get("sue")

    def test_addresses(self):
        nodes, path, options = gothrottle_limits._connect._parts("bob:p%40ss@[::1]:7000,localhost/name", 26379, {})
        self.assertEqual((nodes, path), ([("::1", 7000), ("localhost", 26379)], "name"))
        self.assertEqual(options, {"username": "bob", "password": "p@ss"})

    def test_client_is_shown(self):
        self.assertIn(ADDR.rpartition(":")[2], str(storage_from_string(f"gothrottle://{ADDR}").storage))

    def test_silent_node(self):
        for prefix in "", "async+":
            with self.subTest(prefix):
                asyncio.run(self.silent_node(storage_from_string(f"{prefix}gothrottle+cluster://{os.environ['CLUSTER']}")))

    async def silent_node(self, storage):
        await done(storage.incr("bob", 60))
        faults = redis.cluster.RedisCluster.from_url(f"redis://{os.environ['CLUSTER']}")
        node = faults.get_node_from_key(storage.key_prefix + "bob").redis_connection
        node.execute_command("DEBUG", "FAULT", "SILENT")
        with self.assertRaises(redis.RedisError):
            await done(storage.incr("bob", 60))
        node.execute_command("DEBUG", "FAULT", "NONE")
        hits = [await done(storage.incr("bob", 60)) for _ in range(20)]
        self.assertIn(hits[-1] - hits[0], (19, 20))  # the one that had no reply may run meanwhile, once

    def test_away(self):
        for kind in "", "s", "+sentinel", "+cluster", "+unix":
            for uri in f"gothrottle{kind}://127.0.0.1:1/main", f"async+gothrottle{kind}://127.0.0.1:1/main":
                with self.subTest(uri):  # a storage of a server that is away can be made
                    async def check(): return await done(storage_from_string(uri).check())
                    self.assertFalse(asyncio.run(check()))


unittest.main()
