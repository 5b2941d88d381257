"""pytest's part in the servers: one database for the run, started before Django reads settings.

`--database=postgres` (the default) starts an own PostgreSQL unless TEST_DATABASE_URL or
DATABASE_URL names one; `--database=sqlite` uses a file in a temporary folder. The choice reaches
`tests.settings` through the environment.

Loaded by `-p tests.plugin` (pyproject.toml) and not as a conftest, because pytest-django reads the
settings before any conftest is imported.
"""

import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from project.servers import PostgresServer

POSTGRES, SQLITE = "postgres", "sqlite"
MARKERS = (
    "postgres_only(reason): runs on PostgreSQL only",
    "sqlite_only(reason): runs on SQLite only",
    "process: starts real processes",
)

server_key = pytest.StashKey[PostgresServer]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database",
        choices=[POSTGRES, SQLITE],
        default=POSTGRES,
        help="database to test on (default: postgres)",
    )


# A wrapper, so that it runs before pytest-django's own hook, which reads the settings.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    options = early_config.known_args_namespace
    if options.database == SQLITE:
        use_sqlite(early_config)
    elif not (options.help or options.version):
        use_postgres(early_config)
    return (yield)


def use_sqlite(config: pytest.Config) -> None:
    folder = Path(tempfile.mkdtemp(prefix="jobqueue-sqlite-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    set_environment(config, f"sqlite:///{folder}/test.sqlite3")


def use_postgres(config: pytest.Config) -> None:
    given = os.environ.get("TEST_DATABASE_URL") or os.environ.get("DATABASE_URL") or ""
    if given.startswith(("postgres://", "postgresql://")):
        set_environment(config, given)
        return
    # The suite asks whether effects survive processes, not power cuts: no fsync.
    server = PostgresServer(durable=False)
    config.add_cleanup(server.stop)
    config.stash[server_key] = server
    set_environment(config, server.start())


def set_environment(config: pytest.Config, url: str) -> None:
    """Name the database for this run only: pytest may be called from a longer-lived process."""
    before = {name: os.environ.get(name) for name in ("TEST_DATABASE_URL", "DATABASE_URL")}
    config.add_cleanup(lambda: restore_environment(before))
    os.environ["TEST_DATABASE_URL"] = url
    # Nothing may reach the database of the developer's own project by accident.
    os.environ.pop("DATABASE_URL", None)


def restore_environment(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_report_header(config: pytest.Config) -> str:
    where = "own server" if server_key in config.stash else "given or file"
    return f"database: {config.getoption('database')} ({where})"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    database = config.getoption("database")
    other = {POSTGRES: "sqlite_only", SQLITE: "postgres_only"}[database]
    for item in items:
        marker = item.get_closest_marker(other)
        if marker is not None:
            # Without a reason the marker itself fails: a skip must say why.
            (reason,) = marker.args
            item.add_marker(pytest.mark.skip(reason=f"not on {database}: {reason}"))
