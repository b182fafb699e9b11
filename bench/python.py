"""Asks for decisions by the Python client and others, for one key and for 10,000: build/bench.sh client runs it on a server of
its own, at SOCKET. All limits admit all calls. It prints samples in the Go benchmark format."""
import asyncio, os, random, threading, time
import limits.storage, limits.strategies, redis, redis.asyncio
import gothrottle, gothrottle.aio

UNITS, THREADS, TASKS = 1_000_000_000, 16, 256
URL, SECONDS = "unix://" + os.environ["SOCKET"], int(os.environ.get("MS") or 3000) / 1000
server = redis.Redis.from_url(URL)


def cpu():
    """Returns the server's processor time in seconds."""
    about = server.info("cpu")
    return about["used_cpu_user"] + about["used_cpu_sys"]


def in_threads(ask, keys):
    """Calls from threads for a while. Returns how long each call took, in seconds."""
    took, end = [], time.monotonic() + SECONDS

    def run(seed):
        pick, own = random.Random(seed), []
        while (began := time.monotonic()) < end:
            assert ask(pick.choice(keys))
            own.append(time.monotonic() - began)
        took.extend(own)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def in_tasks(make, keys):
    """Does the same from tasks of one event loop."""
    async def body():
        ask, close = make()
        took, end = [], time.monotonic() + SECONDS

        async def run(seed):
            pick = random.Random(seed)
            while (began := time.monotonic()) < end:
                assert await ask(pick.choice(keys))
                took.append(time.monotonic() - began)

        await asyncio.gather(*(run(seed) for seed in range(TASKS)))
        await close()
        return took

    return asyncio.run(body())


def plain():
    pool = redis.asyncio.BlockingConnectionPool.from_url(URL, max_connections=TASKS)
    client = redis.asyncio.Redis(connection_pool=pool)

    async def ask(key):
        return (await client.execute_command("GO.THROTTLE", key, UNITS - 1, UNITS, 60))[0] == 0

    return ask, pool.disconnect


def ours(**options):
    def make():
        client = gothrottle.aio.connect(URL, timeout=10, **options)
        rate = client.rate("aio", per_minute=UNITS)

        async def ask(key):
            return (await rate.allow(key)).allowed

        return ask, client.close

    return make


rate = gothrottle.connect(URL, timeout=10).rate("threads", per_minute=UNITS)
storage, item = limits.storage.storage_from_string("redis+" + URL, socket_timeout=10), limits.parse(f"{UNITS} per minute")
fixed, moving = (kind(storage) for kind in (limits.strategies.FixedWindowRateLimiter, limits.strategies.MovingWindowRateLimiter))
contenders = {
    "gothrottle,_threads": (in_threads, lambda key: rate.allow(key).allowed),
    "limits,_fixed_window,_threads": (in_threads, lambda key: fixed.hit(item, key)),
    "limits,_moving_window,_threads": (in_threads, lambda key: moving.hit(item, key)),
    "gothrottle.aio": (in_tasks, ours()),
    "gothrottle.aio_by_script": (in_tasks, ours(script=True)),
    "redis.asyncio,_256_connections": (in_tasks, plain)}
for keys in 1, 10_000:
    for name, (measure, ask) in contenders.items():
        server.flushall()
        before, own = cpu(), time.process_time()
        took = sorted(measure(ask, [f"k{i}" for i in range(keys)]))
        calls, own = len(took), time.process_time() - own
        figures = {"ops/s": calls / SECONDS, "server-ns/op": (cpu() - before) / calls * 1e9, "client-ns/op": own / calls * 1e9,
                   "p99-ms": took[calls * 99 // 100] * 1000}
        said = " ".join(f"{value:.4g} {unit}" for unit, value in figures.items())
        print(f"BenchmarkPython/keys={keys}/row={name}/server=Redis_{server.info('server')['redis_version']} {calls} {said}", flush=True)
