"""Measures the Python client beside others, on one key and on 10,000: make bench-client. Arguments: server, module, seconds."""
import asyncio, os, random, socket, subprocess, sys, threading, time
import limits.storage, limits.strategies, redis, redis.asyncio
import gothrottle, gothrottle.aio

SERVER, MODULE, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
UNITS = 1_000_000_000  # the limit admits all calls
KEYS = {"one key": ["k"], "10,000 keys": [f"k{i}" for i in range(10_000)]}
THREADS, TASKS = 16, 256
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]
URL = f"redis://127.0.0.1:{PORT}"


def used(pid):
    """Returns the processor time of a process in seconds."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_threads(ask, keys):
    """Calls from threads for a while. Returns how long each call took."""
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


def in_tasks(make):
    """Returns the same for calls from tasks of one event loop."""
    def measure(_, keys):
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

    return measure


def plain():
    pool = redis.asyncio.BlockingConnectionPool.from_url(URL, max_connections=64)
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


def main():
    threads = gothrottle.connect(URL, timeout=10).rate("threads", per_minute=UNITS)
    storage, item = limits.storage.storage_from_string(URL), limits.parse(f"{UNITS} per minute")
    fixed, moving = (kind(storage) for kind in (limits.strategies.FixedWindowRateLimiter, limits.strategies.MovingWindowRateLimiter))
    contenders = [
        (f"gothrottle, {THREADS} threads", lambda key: threads.allow(key).allowed, in_threads),
        ("limits, fixed window", lambda key: fixed.hit(item, key), in_threads),
        ("limits, moving window", lambda key: moving.hit(item, key), in_threads),
        (f"gothrottle.aio, {TASKS} tasks", None, in_tasks(ours())),
        ("gothrottle.aio, by the script", None, in_tasks(ours(script=True))),
        ("redis.asyncio, 64 connections", None, in_tasks(plain))]
    server = subprocess.Popen([SERVER, "--port", str(PORT), "--bind", "127.0.0.1", "--save", "", "--loadmodule", MODULE],
                              stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                redis.Redis.from_url(URL).ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        print(f"{'keys':<12} {'client':<32} {'calls/s':>9} {'server µs/call':>15} {'client µs/call':>15} {'p99 ms':>8}")
        for name, keys in KEYS.items():
            for who, ask, measure in contenders:
                redis.Redis.from_url(URL).flushall()
                before, own = used(server.pid), time.process_time()
                took = sorted(measure(ask, keys))
                theirs, own = used(server.pid) - before, time.process_time() - own
                print(f"{name:<12} {who:<32} {len(took) / SECONDS:>9.0f} {theirs / len(took) * 1e6:>15.2f} {own / len(took) * 1e6:>15.1f} "
                      f"{took[len(took) * 99 // 100] * 1000:>8.1f}", flush=True)
    finally:
        server.terminate()
        server.wait()


main()
