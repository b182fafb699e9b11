"""The strategies of limits answer the same over this storage as over its own. TestAdapters runs this file."""
import os, time, unittest
from limits import parse
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter
import limits_storage  # makes the scheme gothrottle known

ITEM = parse("5 per hour")

def life(strategy, storage, user):
    limiter = strategy(storage)
    def hit(cost=1, user=user):
        return limiter.hit(ITEM, user, cost=cost), limiter.test(ITEM, user), limiter.get_window_stats(ITEM, user)[1]
    told = [hit(), hit(2), hit(), hit(), hit(), hit(user="not " + user)]
    reset = limiter.get_window_stats(ITEM, user)[0] - time.time()
    limiter.clear(ITEM, user)
    return told + [limiter.test(ITEM, user), hit()], reset

class Storage(unittest.TestCase):
    def setUp(self):
        self.storage = storage_from_string("gothrottle://" + os.environ["ADDR"])
        self.storage.reset()

    def test_strategies(self):
        for strategy in FixedWindowRateLimiter, MovingWindowRateLimiter:
            with self.subTest(strategy.__name__):
                told, reset = life(strategy, self.storage, strategy.__name__)
                self.assertEqual(told, life(strategy, MemoryStorage(), strategy.__name__)[0])
                self.assertTrue(3500 < reset <= 3601, reset)

    def test_keys_of_other_storages(self):
        for strategy in FixedWindowRateLimiter, MovingWindowRateLimiter:
            for storage in storage_from_string("redis://" + os.environ["ADDR"]), self.storage:
                self.assertTrue(strategy(storage).hit(ITEM, "keys of", strategy.__name__))

    def test_reset(self):
        for user in "ann", "bob":
            FixedWindowRateLimiter(self.storage).hit(ITEM, user)
        self.assertEqual(self.storage.reset(), 2)
        self.assertEqual(self.storage.reset(), 0)

    def test_check(self):
        self.assertTrue(self.storage.check())
        self.assertFalse(storage_from_string("gothrottle://127.0.0.1:1").check())

unittest.main()
