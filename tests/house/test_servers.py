"""The servers of `project.servers` start, break and end as they promise."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest

from project.servers import PgBouncer, PostgresServer, RedisServer, ServerError
from project.servers.process import first_ephemeral_port, free_port
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.process,
    pytest.mark.postgres_only("the servers do not depend on the database under test"),
]

OWNER = """
import sys, time
from project.servers import RedisServer
server = RedisServer()
server.start()
print(server.pid, server.guard.pid, server.folder, flush=True)
time.sleep(600)
"""


def query(url: str, sql: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(sql).fetchone()
        assert row is not None
        return row[0]


def listening_addresses(pid: int) -> set[str]:
    found = psutil.Process(pid).net_connections("inet")
    return {c.laddr.ip for c in found if c.status == psutil.CONN_LISTEN}


def start_owner() -> tuple[subprocess.Popen[str], int, int, Path]:
    """Start a process that owns a Redis: the process, pid of server and guard, the folder."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    server, guard, folder = owner.stdout.readline().split()
    owner.stdout.close()
    return owner, int(server), int(guard), Path(folder)


def test_postgres_is_current_on_loopback_and_not_root(postgres_server: PostgresServer) -> None:
    assert str(query(postgres_server.url, "SHOW server_version")).startswith("18.")
    assert listening_addresses(postgres_server.pid) == {"127.0.0.1"}
    assert psutil.Process(postgres_server.pid).uids().real != 0


def test_postgres_refuses_a_wrong_password(postgres_server: PostgresServer) -> None:
    url = postgres_server.url.replace(postgres_server.password, "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url)


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_restarted_postgres_keeps_port_and_committed_data(
    disposable_postgres: PostgresServer, how: str
) -> None:
    server = disposable_postgres
    before = server.url
    with psycopg.connect(before) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    server.restart(how)
    assert server.url == before
    assert query(server.url, "SELECT answer FROM kept") == 42


def test_durable_is_the_default() -> None:
    assert "fsync" not in PostgresServer().settings
    assert PostgresServer(durable=False).settings["fsync"] == "off"


def test_a_server_that_does_not_start_shows_its_log() -> None:
    server = PostgresServer(durable=False, settings={"no_such_setting": "1"})
    with pytest.raises(ServerError, match="no_such_setting"):
        server.start()
    assert server.folder is None


def test_redis_restarts_empty_on_the_same_port(redis_server: RedisServer) -> None:
    import redis

    with redis.Redis.from_url(redis_server.url) as client:
        client.set("key", "value")
        redis_server.send_signal(signal.SIGKILL)
        wait_until(lambda: not redis_server.is_running)
        redis_server.resume()
        assert client.keys() == []
    assert listening_addresses(redis_server.pid) == {"127.0.0.1"}


def test_pgbouncer_serves_every_database_in_transaction_mode(pgbouncer: PgBouncer) -> None:
    assert query(pgbouncer.url_of("postgres"), "SELECT current_database()") == "postgres"
    with psycopg.connect(pgbouncer.url_of("pgbouncer"), autocommit=True) as console:
        settings = {row[0]: row[1] for row in console.execute("SHOW CONFIG")}
    assert settings["pool_mode"] == "transaction"


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_ends_with_its_owner(end: signal.Signals) -> None:
    owner, server, guard, folder = start_owner()
    owner.send_signal(end)
    owner.wait()
    wait_until(lambda: not psutil.pid_exists(server) and not psutil.pid_exists(guard))
    wait_until(lambda: not folder.exists())


def test_a_stopped_server_ends_with_its_owner_too() -> None:
    owner, server, _, folder = start_owner()
    os.kill(server, signal.SIGSTOP)
    owner.kill()
    owner.wait()
    wait_until(lambda: not psutil.pid_exists(server))
    wait_until(lambda: not folder.exists())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's death signal")
def test_a_server_ends_with_its_guard() -> None:
    owner, server, guard, folder = start_owner()
    os.kill(guard, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(server))
    owner.terminate()
    owner.wait()
    shutil.rmtree(folder)


def test_a_forked_copy_of_the_owner_does_not_end_the_server(shared_redis: RedisServer) -> None:
    copy = os.fork()
    if copy == 0:
        shared_redis.stop()
        os._exit(0)
    os.waitpid(copy, 0)
    assert shared_redis.is_running
    assert shared_redis.log_path.exists()


def test_free_ports_lie_below_those_of_outgoing_connections() -> None:
    assert free_port() < first_ephemeral_port()
