"""An own PgBouncer in transaction mode, from PATH (Debian's package `pgbouncer`)."""

import os
import shutil
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from project.servers.process import (
    LOOPBACK,
    ServerProcess,
    ServerUnavailable,
    give_to_server,
)

ADMIN_DATABASE = "pgbouncer"
"""PgBouncer's own console; the database user may use it (SHOW POOLS, RECONNECT, KILL)."""


class PgBouncer(ServerProcess):
    """A pooler in front of a PostgreSQL given by its URL; every database name passes through.

    Options:
        default_pool_size   server connections per database and user
        settings            further settings of pgbouncer.ini; they win over ours
    """

    name = "pgbouncer"

    def __init__(
        self,
        postgres_url: str,
        *,
        default_pool_size: int = 20,
        settings: dict[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        super().__init__(port=port)
        self.target = urlsplit(postgres_url)
        self.default_pool_size = default_pool_size
        self.settings = settings or {}

    @classmethod
    def available(cls) -> bool:
        """Return whether this machine has a PgBouncer to start."""
        return find_pgbouncer() is not None

    @property
    def url(self) -> str:
        """The URL of the same database as the target's, through the pooler."""
        return self.url_of(unquote(self.target.path.lstrip("/")))

    def url_of(self, database: str) -> str:
        """Return the URL of a database of the target through the pooler."""
        user, password = self.target.username or "", self.target.password or ""
        return f"postgresql://{user}:{password}@{LOOPBACK}:{self.port}/{quote(database)}"

    def prepare(self, folder: Path) -> None:
        """Write the file that names the one user."""
        found = find_pgbouncer()
        if found is None:
            raise ServerUnavailable("no PgBouncer: install it (Debian: apt-get install pgbouncer)")
        self.binary = found
        user, password = unquote(self.target.username or ""), unquote(self.target.password or "")
        write_privately(folder / "users", f'"{user}" "{password}"\n')

    def command(self, folder: Path) -> list[str]:
        """Write the settings for the port at hand and return the foreground command."""
        user = unquote(self.target.username or "")
        settings = {
            "listen_addr": LOOPBACK,
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "pool_mode": "transaction",
            "default_pool_size": str(self.default_pool_size),
            "max_client_conn": "500",
            "auth_type": "scram-sha-256",
            "auth_file": str(folder / "users"),
            "admin_users": user,
            "ignore_startup_parameters": "extra_float_digits",
            **self.settings,
        }
        lines = [
            "[databases]",
            f"* = host={self.target.hostname} port={self.target.port or 5432}",
            "[pgbouncer]",
            *(f"{name} = {value}" for name, value in settings.items()),
        ]
        write_privately(folder / "pgbouncer.ini", "\n".join(lines) + "\n")
        return [str(self.binary), str(folder / "pgbouncer.ini")]


def write_privately(path: Path, text: str) -> None:
    """Write a file that only the server's user reads: it may hold a password."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
    give_to_server(path)


def find_pgbouncer() -> Path | None:
    """Return the path of the binary, or None; distributions put it where PATH may not look."""
    searched = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which("pgbouncer", path=searched)
    return Path(found) if found else None
