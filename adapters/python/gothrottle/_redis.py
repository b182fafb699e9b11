"""Clients of redis-py for a URL. All connect at the first call: a service starts while they can't."""
from __future__ import annotations

from typing import Any, Callable
from urllib.parse import unquote, urlsplit

import redis
import redis.asyncio
from redis.backoff import NoBackoff

from ._errors import ParamsError


def maker(library: Any, server: Any, limit: float, options: dict[str, Any]) -> Callable[[], Any]:
    """Returns what makes a client that sends a call once, for a URL or a client of the program's, whose connections it doesn't use.
    The library is redis or redis.asyncio; the limit is for connecting and for replies, in seconds."""
    once = {"retry": library.retry.Retry(NoBackoff(), 0)}  # a call that timed out may have taken its units
    times = {"socket_timeout": limit, "socket_connect_timeout": limit}
    if not isinstance(server, str):
        pool = server.connection_pool if isinstance(server, library.Redis) else None
        if pool is None or hasattr(pool, "service_name"):
            raise ParamsError(f"pass a URL, or a client of {library.__name__} of one server: those of clusters and Sentinels may "
                              "send a call twice")
        given = {k: v for k, v in pool.connection_kwargs.items() if k not in ("retry_on_error", "retry_on_timeout")}
        if "path" in given:
            del times["socket_connect_timeout"]  # connections of sockets have no such option
        given |= {**options, **times, **once}
        return lambda: library.Redis(connection_pool=library.ConnectionPool(pool.connection_class, **given))
    kind, _, rest = server.partition("://")
    options = {**times, **once, **options}
    if kind == "redis+cluster":
        return _cluster(library, rest, options)
    if kind == "redis+sentinel":
        return _sentinel(library, rest, options)
    if "connection_pool" in options:
        return lambda: library.Redis(connection_pool=options["connection_pool"])
    if kind not in ("redis", "rediss", "unix"):
        raise ParamsError(f"{kind}:// is not redis://, rediss://, unix://, redis+cluster:// or redis+sentinel://")
    if kind == "unix":
        del options["socket_connect_timeout"]
    if "max_connections" in options:  # threads wait for one, for as long as for a reply
        return lambda: library.Redis(connection_pool=library.BlockingConnectionPool.from_url(server, timeout=limit, **options))
    return lambda: library.Redis.from_url(server, **options)


def _parts(rest: str, port: int, options: dict[str, Any]) -> tuple[list[tuple[str | None, int]], str, dict[str, Any]]:
    """Returns the nodes, the path, and the options with the name and the password of user:password@host:port,host:port/path.
    A host without a port has the port that is given."""
    url = urlsplit("//" + rest)
    user, _, nodes = url.netloc.rpartition("@")
    name, _, password = user.partition(":")
    account = {"username": unquote(name), "password": unquote(password)}
    addrs = [urlsplit("//" + node) for node in nodes.split(",")]
    return ([(addr.hostname, addr.port or port) for addr in addrs], url.path.strip("/"),
            {**{k: v for k, v in account.items() if v}, **options})


def _sentinel(library: Any, rest: str, options: dict[str, Any]) -> Callable[[], Any]:
    nodes, path, options = _parts(rest, 26379, options)
    service = options.pop("service_name", None) or path
    if not service:
        raise ParamsError("the name of the service is missing: redis+sentinel://host:26379/name")
    options.pop("use_replicas", None)  # replicas are behind: no decision reads them
    kwargs = {**{key: options[key] for key in ("socket_timeout", "socket_connect_timeout")}, **options.pop("sentinel_kwargs", {})}
    return lambda: library.sentinel.Sentinel(nodes, sentinel_kwargs=kwargs, **options).master_for(service)


def _cluster(library: Any, rest: str, options: dict[str, Any]) -> Callable[[], Any]:
    nodes, _, options = _parts(rest, 6379, options)
    options = {"cluster_error_retry_attempts": int(redis.__version__.startswith("4.3.")), **options}  # 4.3 counts the first attempt
    client = _Once if library is redis else _AsyncOnce
    return lambda: client(startup_nodes=[library.cluster.ClusterNode(*node) for node in nodes], **options)


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
