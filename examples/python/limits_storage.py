"""A storage of limits, on which Flask-Limiter and slowapi stand: storage_uri="gothrottle://127.0.0.1:6379".
Fixed windows are GO.QUOTA, moving windows are GO.WINDOW. A window that each hit extends is not supported."""
import math, time
import redis
from limits.storage import MovingWindowSupport, Storage
from redis.backoff import NoBackoff
from redis.retry import Retry


class GothrottleStorage(Storage, MovingWindowSupport):
    STORAGE_SCHEME = ["gothrottle"]
    base_exceptions = redis.RedisError

    def __init__(self, uri, **options):
        super().__init__(uri, **options)
        self.server = redis.Redis.from_url("redis" + uri[len("gothrottle"):], socket_timeout=0.25,
                                           socket_connect_timeout=0.25, retry=Retry(NoBackoff(), 0))  # one send

    def ask(self, command, key, *words):  # the keys of limits' own storages have other types, so ours begin otherwise
        return self.server.execute_command(command, "gothrottle:" + key, *words)

    def count(self, command, key, period, units):  # limits compares with the limit by itself
        _, limit, remaining, _, reset = self.ask(command, key, 10**12, period, units, "MS")
        return limit - remaining, math.ceil(time.time() + reset / 1000)

    def incr(self, key, expiry, elastic_expiry=False, amount=1):
        if elastic_expiry:
            raise NotImplementedError("gothrottle has no window that each hit extends")
        return self.count("GO.QUOTA", key, expiry * 1000, amount)[0]

    def get(self, key):
        return self.count("GO.QUOTA_RO", key, 1000, 0)[0]  # the window that runs keeps its own period

    def get_expiry(self, key):
        return self.count("GO.QUOTA_RO", key, 1000, 0)[1]

    def acquire_entry(self, key, limit, expiry, amount=1):
        return not self.ask("GO.WINDOW", key, limit, expiry, amount)[0]

    def get_moving_window(self, key, limit, expiry):
        reply = self.ask("GO.WINDOW_RO", key, limit, expiry * 1000, 1, "MS")
        limited, _, remaining, retry, reset = reply
        end = time.time() + (retry if limited else reset) / 1000
        return math.ceil(end) - expiry, limit - remaining - (not limited)

    def check(self):
        try:
            return self.server.execute_command("COMMAND INFO", "GO.QUOTA")[0] is not None
        except redis.RedisError:
            return False

    def clear(self, key):
        self.ask("DEL", key)

    def reset(self):
        return sum(self.server.unlink(key) for key in self.server.scan_iter("gothrottle:LIMITER*"))
