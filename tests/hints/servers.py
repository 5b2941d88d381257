"""Servers that are away, silent, or of the wrong role."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from project.servers import RedisServer
from project.servers.process import LOOPBACK, free_port


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses connections."""
    yield free_port()


@contextmanager
def full_backlog() -> Iterator[int]:
    """A port whose queue of connections is full: connecting hangs."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen(0)
        waiting = []
        try:
            for _ in range(16):
                client = socket.socket()
                client.setblocking(False)
                client.connect_ex(listener.getsockname())
                waiting.append(client)
            yield listener.getsockname()[1]
        finally:
            for client in waiting:
                client.close()


@contextmanager
def silent_server() -> Iterator[int]:
    """A port that accepts (the kernel does) and never answers."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen(128)
        yield listener.getsockname()[1]


class FlippingRedis(RedisServer):
    """A Redis that comes back as the replica of nobody after `is_replica` was set: READONLY."""

    is_replica = False

    def command(self, folder: Path) -> list[str]:
        command = super().command(folder)
        if not self.is_replica:
            return command
        kept = command[: command.index("--rename-command")]  # which would disable replication
        return [*kept, "--replicaof", f"{LOOPBACK} 1"]
