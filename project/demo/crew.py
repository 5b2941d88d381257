"""Which processes there are: web, gateway, workers, scheduler, reaper."""

import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from project.demo import plan as figures
from project.demo.fleet import Fleet

MANAGE = str(Path(__file__).resolve().parents[2] / "manage.py")
SUPERVISORS = [f"workers-{number}" for number in range(1, figures.SUPERVISORS + 1)]
LOG_FORMAT = ("--log-format", "json")


def loopback_socket() -> socket.socket:
    """Return a listening socket on a free port, to be inherited by a server.

    Whoever connects before the server is up waits in its queue: no polling, and no port that
    somebody else can take in between.
    """
    return socket.create_server(("127.0.0.1", 0), backlog=128)


def ledger_of(fleet: Fleet) -> Path:
    """Return the file in which the gateway writes down what it did."""
    return fleet.directory / "ledger.jsonl"


def start_gateway(fleet: Fleet, listener: socket.socket, *, seed: int) -> None:
    """Start the payment gateway and mail provider."""
    argv = [sys.executable, "-m", "project.gateway", "--fd", str(listener.fileno())]
    argv += ["--ledger", str(ledger_of(fleet)), "--seed", str(seed)]
    argv += ["--late-seconds", str(figures.GATEWAY_LATE_SECONDS)]
    fleet.start("gateway", argv, descriptors=[listener.fileno()])


def start_web(fleet: Fleet, listener: socket.socket) -> None:
    """Start the web server."""
    argv = [sys.executable, "-m", "uvicorn", "project.asgi:application"]
    argv += ["--fd", str(listener.fileno()), "--lifespan", "off", "--no-access-log"]
    fleet.start("web", argv, descriptors=[listener.fileno()])


def start_workers(fleet: Fleet) -> None:
    """Start the supervisors, and a scheduler and a reaper of their own."""
    size = ["--processes", str(figures.PROCESSES), "--threads", str(figures.THREADS)]
    for name in SUPERVISORS:
        fleet.start(
            name, manage("runworker", *size, "--name", name, "--no-maintenance", *LOG_FORMAT)
        )
    fleet.start("scheduler", manage("runscheduler", *LOG_FORMAT))
    fleet.start("reaper", manage("runreaper", *LOG_FORMAT))


def manage(*arguments: str) -> Sequence[str]:
    """Return the command line of a Django command of this project."""
    return [sys.executable, MANAGE, *arguments]
