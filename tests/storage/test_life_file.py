"""A worker's life on SQLite: the kernel says who lives, at once, however a process ends."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.db import DEFAULT_DB_ALIAS, connections

from jobqueue.ids import lock_key, new_identity
from jobqueue.models import Worker
from jobqueue.storage import Storage, life_file, storage_for
from jobqueue.storage.life_file import LifeFile, life_files
from tests.storage.making import claimed, insert, register

pytestmark = pytest.mark.sqlite_only("on PostgreSQL leases and session locks decide")

HOLDER = """
import os, sys
from uuid import UUID
from jobqueue.storage.life_file import LifeFile
LifeFile(sys.argv[1], UUID(sys.argv[2])).hold()
if sys.argv[3] == "fork" and os.fork() == 0:
    os.setsid()
    os.write(1, b"%d\\n" % os.getpid())
    sys.stdin.read()
    os._exit(0)
os.write(1, b"held\\n")
sys.stdin.read()
"""


@contextmanager
def holder(database: object, identity: UUID, how: str = "plain") -> Iterator[subprocess.Popen]:
    """Run another process that holds the life file of `identity`."""
    command = [sys.executable, "-c", HOLDER, str(database), identity.hex, how]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            process.lines = [process.stdout.readline() for _ in range(1 + (how == "fork"))]
            yield process
        finally:
            process.kill()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "db.sqlite3"


def test_a_file_that_is_missing_is_held_by_nobody(database: Path) -> None:
    assert LifeFile(database, new_identity()).is_held() is False
    assert life_files(database) == []


def test_the_holder_answers_for_itself_without_opening_its_file(database: Path) -> None:
    """Closing a second descriptor would drop the lock."""
    identity = new_identity()
    LifeFile(database, identity).hold()
    assert LifeFile(database, identity).is_held() is True
    assert LifeFile(database, identity).is_ours() is True
    script = (
        "import sys; from uuid import UUID; from jobqueue.storage.life_file import LifeFile;"
        "print(LifeFile(sys.argv[1], UUID(sys.argv[2])).is_held())"
    )
    seen = subprocess.run(
        [sys.executable, "-c", script, str(database), identity.hex],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert seen.stdout == "True\n"


def test_holding_twice_is_holding_once(database: Path) -> None:
    life = LifeFile(database, new_identity())
    life.hold()
    life.hold()
    life.release()
    assert (life.is_held(), life.path.exists()) == (False, True)
    life.release()


def test_a_removed_file_is_gone_and_may_be_removed_again(database: Path) -> None:
    life = LifeFile(database, new_identity())
    life.hold()
    life.remove()
    assert (life.is_held(), life.path.exists()) == (False, False)
    life.remove()


def test_another_process_is_seen_to_live_and_to_die_at_once(database: Path) -> None:
    identity = new_identity()
    with holder(database, identity) as process:
        assert LifeFile(database, identity).is_held() is True
        assert LifeFile(database, identity).is_ours() is False
        process.kill()
        process.wait()
        assert LifeFile(database, identity).is_held() is False


def test_a_frozen_process_is_alive(database: Path) -> None:
    identity = new_identity()
    with holder(database, identity) as process:
        process.send_signal(signal.SIGSTOP)
        assert LifeFile(database, identity).is_held() is True


def test_what_a_job_has_forked_does_not_keep_its_worker_alive(database: Path) -> None:
    identity = new_identity()
    with holder(database, identity, "fork") as process:
        (grandchild,) = (int(line) for line in process.lines if line.strip().isdigit())
        process.kill()
        process.wait()
        os.kill(grandchild, 0)  # still there
        assert LifeFile(database, identity).is_held() is False
        os.kill(grandchild, signal.SIGKILL)


def test_looking_does_not_disturb_another_look_or_the_holder(database: Path) -> None:
    identity = new_identity()
    with holder(database, identity) as process:
        assert [LifeFile(database, identity).is_held() for _ in range(50)] == [True] * 50
        process.kill()
        process.wait()
        assert [LifeFile(database, identity).is_held() for _ in range(50)] == [False] * 50


def test_life_files_are_listed_and_strangers_are_not(database: Path) -> None:
    identities = sorted((new_identity(), new_identity()), key=lambda each: each.hex)
    for identity in identities:
        LifeFile(database, identity).hold()
    (LifeFile(database, identities[0]).path.parent / "readme.life").touch()
    assert [life.identity for life in life_files(database)] == identities


def test_a_link_to_the_database_leads_to_the_same_files(database: Path, tmp_path: Path) -> None:
    database.touch()
    link = tmp_path / "link.sqlite3"
    link.symlink_to(database)
    identity = new_identity()
    LifeFile(database, identity).hold()
    assert LifeFile(link, identity).path == LifeFile(database, identity).path


def test_a_file_that_a_sweep_deletes_while_it_is_taken_is_made_anew(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life, deleted = LifeFile(database, new_identity()), []

    def lockf_late(descriptor: int, how: int) -> None:
        if not deleted:
            deleted.append(life.path.unlink())
        fcntl.lockf(descriptor, how)

    monkeypatch.setattr(life_file, "fcntl", SimpleNamespace(**vars(fcntl) | {"lockf": lockf_late}))
    life.hold()
    assert life.path.exists()
    assert os.path.samestat(os.fstat(life_file._held[life.path][1]), life.path.stat())


def test_what_cannot_be_held_is_not_taken_for_held(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks here")

    life = LifeFile(database, new_identity())
    monkeypatch.setattr(life_file, "fcntl", SimpleNamespace(**vars(fcntl) | {"lockf": refuse}))
    with pytest.raises(OSError, match="no locks here"):
        life.hold()
    assert life.is_ours() is False
    with pytest.raises(OSError, match="no locks here"):
        life.is_held()


# --- in storage -----------------------------------------------------------------------------------


@pytest.fixture
def database_file() -> str:
    return str(connections[DEFAULT_DB_ALIAS].settings_dict["NAME"])


def register_elsewhere(storage: Storage, identity: UUID) -> UUID:
    """Register the worker of another process."""
    registered = register(storage)
    LifeFile(storage.connection.settings_dict["NAME"], registered).remove()
    Worker.objects.filter(pk=registered).update(id=identity)
    return identity


def test_no_lease_decides_over_a_living_process(storage: Storage, database_file: str) -> None:
    identity = new_identity()
    with holder(database_file, identity) as process:
        register_elsewhere(storage, identity)
        long_ago = datetime(2020, 1, 1, tzinfo=UTC)
        Worker.objects.update(lease_until=long_ago, heartbeat_at=long_ago)
        far_away = datetime(2090, 1, 1, tzinfo=UTC)
        assert storage.mark_expired(identity, now=far_away) is False
        assert storage.workers(now=far_away)[0].lease_left == 0.0
        assert storage.life_locks() == {lock_key(identity)}
        process.kill()
        process.wait()
        assert storage.life_locks() == set()
        assert storage.workers()[0].lease_left < 0
        assert storage.mark_expired(identity) is True
        assert Worker.objects.get().dead_reason == "process ended"


def test_a_dead_workers_file_goes_with_it(storage: Storage, database_file: str) -> None:
    gone, leaving = new_identity(), register(storage)
    register_elsewhere(storage, gone)
    with holder(database_file, gone) as process:
        process.kill()
        process.wait()
    storage.mark_expired(gone)
    storage.mark_dead(leaving, "stopped")
    assert life_files(database_file) == []


def test_a_living_process_that_is_declared_dead_keeps_its_file(
    storage: Storage, database_file: str
) -> None:
    identity = new_identity()
    with holder(database_file, identity):
        register_elsewhere(storage, identity)
        assert storage.mark_dead(identity, "forced") is True
        assert LifeFile(database_file, identity).is_held() is True
    storage.prune_workers(3_600.0)
    assert life_files(database_file) == []


def test_pruning_leaves_the_files_of_the_living(storage: Storage, database_file: str) -> None:
    worker, not_yet_registered = register(storage), new_identity()
    with holder(database_file, not_yet_registered):
        storage.prune_workers(-1.0)
        left = {life.identity for life in life_files(database_file)}
        assert left == {worker, not_yet_registered}


def test_jobs_of_a_process_that_ended_are_unreaped(storage: Storage) -> None:
    held = claimed(storage)
    assert storage.backlog_ages()["oldest_unreaped"] is None
    LifeFile(storage.connection.settings_dict["NAME"], held.worker).release()
    assert storage.backlog_ages()["oldest_unreaped"] is not None


def test_a_database_in_memory_lives_and_dies_with_its_process() -> None:
    given = connections[DEFAULT_DB_ALIAS]
    memory = given.copy()
    memory.settings_dict = {
        **given.settings_dict,
        "NAME": "file:life?mode=memory&cache=shared",
        "OPTIONS": {"transaction_mode": "IMMEDIATE"},
    }
    given.ensure_connection()
    memory.ensure_connection()
    try:
        given.connection.backup(memory.connection)
        storage = storage_for(memory)
        mine, stranger = register(storage), register(storage, pid=os.getpid() + 1)
        assert storage.life_locks() == {lock_key(mine)}
        assert storage.mark_expired(mine) is False
        assert storage.mark_expired(stranger) is True
        assert storage.mark_dead(mine, "stopped") is True
        assert storage.prune_workers(-1.0) == 2
        assert insert(storage) != []
    finally:
        memory.close()
