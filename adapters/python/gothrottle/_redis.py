"""Clients of redis-py for a URL. All connect at the first call: a service starts while they can't."""
from __future__ import annotations

import functools
from typing import Any, Callable
from urllib.parse import unquote, urlsplit

import redis
import redis.asyncio.cluster
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.cluster
import redis.retry
import redis.sentinel
from redis.backoff import NoBackoff

from ._errors import ParamsError


def connect(library: Any, url: str, limit: float, options: dict[str, Any]) -> Callable[[], Any]:
    """Returns a function that returns the client. The library is redis or redis.asyncio; the limit is for connecting and for
    replies, in seconds."""
    kind, _, rest = url.partition("://")
    # No retries: a call that timed out may have taken its units, and sent again takes them twice.
    options = {"socket_timeout": limit, "socket_connect_timeout": limit, "retry": library.retry.Retry(NoBackoff(), 0), **options}
    if kind == "redis+cluster":
        return _cluster(library, rest, options)
    if kind == "redis+sentinel":
        return _sentinel(library, rest, options)
    if "connection_pool" in options:
        client = library.Redis(connection_pool=options["connection_pool"])
    elif kind in ("redis", "rediss", "unix"):
        if kind == "unix":
            del options["socket_connect_timeout"]  # its connections have no such option
        client = library.Redis.from_url(url, **options)
    else:
        raise ParamsError(f"{kind}:// is not redis://, rediss://, unix://, redis+cluster:// or redis+sentinel://")
    return lambda: client


def adopted(library: Any, client: Any, limit: float, options: dict[str, Any]) -> Callable[[], Any]:
    """Returns a function that returns a client like the program's that sends a call once, and ends it. It has a pool of its own."""
    pool = getattr(client, "connection_pool", None)
    if pool is None or hasattr(pool, "service_name"):
        raise ParamsError("pass the URL of a cluster or of Sentinels: redis-py's clients of them may send a call twice")
    times = {} if "path" in pool.connection_kwargs else {"socket_connect_timeout": limit}
    options = {**pool.connection_kwargs, **options, "socket_timeout": limit, **times, "retry": library.retry.Retry(NoBackoff(), 0)}
    options.pop("retry_on_error", None)
    options.pop("retry_on_timeout", None)
    own = library.Redis(connection_pool=library.ConnectionPool(pool.connection_class, **options))
    return lambda: own


def _parts(rest: str, port: int, options: dict[str, Any]) -> tuple[list[tuple[str | None, int]], str, dict[str, Any]]:
    """Returns the nodes, the path, and the options with the name and the password of user:password@host:port,host:port/path.
    A host without a port has the port that is given."""
    user, _, nodes = urlsplit("//" + rest).netloc.rpartition("@")
    name, _, password = user.partition(":")
    account = {"username": unquote(name), "password": unquote(password)}
    addrs = [urlsplit("//" + node) for node in nodes.split(",")]
    path = urlsplit("//" + rest).path.strip("/")
    options = {**{k: v for k, v in account.items() if v}, **options}
    return [(addr.hostname, addr.port or port) for addr in addrs], path, options


def _sentinel(library: Any, rest: str, options: dict[str, Any]) -> Callable[[], Any]:
    nodes, path, options = _parts(rest, 26379, options)
    service = options.pop("service_name", None) or path
    if not service:
        raise ParamsError("the name of the service is missing: redis+sentinel://host:26379/name")
    options.pop("use_replicas", None)  # replicas are behind: no decision reads them
    times = {key: options[key] for key in ("socket_timeout", "socket_connect_timeout")}
    kwargs = {**times, **options.pop("sentinel_kwargs", {})}
    client = library.sentinel.Sentinel(nodes, sentinel_kwargs=kwargs, **options).master_for(service)
    return lambda: client


def _cluster(library: Any, rest: str, options: dict[str, Any]) -> Callable[[], Any]:
    nodes, _, options = _parts(rest, 6379, options)
    old = redis.__version__.startswith("4.3.")
    options = {"cluster_error_retry_attempts": int(old), **options}  # 4.3 counts the first attempt
    nodes = [library.cluster.ClusterNode(*node) for node in nodes]
    return functools.partial(_Once if library is redis else _AsyncOnce, startup_nodes=nodes, **options)


AWAY = redis.ConnectionError, redis.TimeoutError
REDIRECTED = redis.exceptions.MovedError, redis.exceptions.AskError, redis.exceptions.TryAgainError  # took no units


class _Once(redis.cluster.RedisCluster):  # type: ignore[misc]
    """Sends a call once: redis-py 4.3 sends it five times if there is no reply, and all versions then close the connections that
    calls to other nodes use."""

    def _execute_command(self, target_node: Any, *words: Any, **options: Any) -> Any:
        try:
            return self.get_redis_connection(target_node).execute_command(*words, **options)
        except REDIRECTED:
            return super()._execute_command(target_node, *words, **options)
        except AWAY:
            self.nodes_manager.initialize()  # a replica may have taken over
            raise


class _AsyncOnce(redis.asyncio.cluster.RedisCluster):  # type: ignore[misc]
    """Does as _Once."""

    async def _execute_command(self, target_node: Any, *words: Any, **options: Any) -> Any:
        try:
            return await target_node.execute_command(*words, **options)
        except REDIRECTED:
            return await super()._execute_command(target_node, *words, **options)
        except AWAY:
            self.nodes_manager.startup_nodes.pop(target_node.name, None)
            self._initialize = True  # the next call asks where the slots are
            raise
