"""Start and stop the servers that the demo, the tests and the benchmarks need.

Each server listens on a free port of 127.0.0.1 only, keeps everything it writes in one private
temporary folder, and ends with the process that started it, however that process ends::

    with PostgresServer() as postgres, RedisServer() as redis:
        print(postgres.url, redis.url)

`RedisServer` and `PgBouncer` may not be had on a machine: ask `RedisServer.available()` first,
or expect `ServerUnavailable`.
"""

from project.servers.pgbouncer import PgBouncer
from project.servers.postgres import PostgresServer
from project.servers.process import ServerError, ServerUnavailable
from project.servers.redis import RedisServer

__all__ = ["PgBouncer", "PostgresServer", "RedisServer", "ServerError", "ServerUnavailable"]
