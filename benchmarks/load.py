"""Requests at a constant rate, whatever the answers take: as many clients send them.

A latency counts from when the request was due, not from when a thread was free to send it: a
server that stalls makes all that were due meanwhile late, as it does in the world.
"""

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

THREADS = 32
"""More than are ever under way at once, unless the server stalls."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is sent where, for the n-th request."""

    name: str
    path: str
    body: Callable[[int], dict[str, Any]]
    headers: Callable[[], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one request; seconds from when it was due."""

    target: str
    status: int
    seconds: float


def send_all(port: int, targets: Sequence[Target], per_minute: int, seconds: float) -> list[Answer]:
    """Send so many requests a minute to `targets`, in turn; return all answers."""
    gap = 60.0 / per_minute
    count = int(seconds / gap)
    numbers = itertools.count()
    begin = time.monotonic() + 0.5
    answers: list[Answer] = []

    def run() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while (number := next(numbers)) < count:
            due = begin + number * gap
            time.sleep(max(0.0, due - time.monotonic()))
            target = targets[number % len(targets)]
            status = _status(connection, target, number)
            answers.append(Answer(target.name, status, time.monotonic() - due))
        connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(run) for _ in range(THREADS)]:
            future.result()
    return answers


def _status(connection: http.client.HTTPConnection, target: Target, number: int) -> int:
    headers = {"Content-Type": "application/json", **target.headers()}
    connection.request("POST", target.path, json.dumps(target.body(number)), headers)
    response = connection.getresponse()
    response.read()
    return response.status


def every(seconds: float, do: Callable[[], object]) -> Callable[[], None]:
    """Call `do` in a thread, again and again with such pauses; return the way to stop it."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(seconds):
            do()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join()

    return end


def new_key() -> str:
    """Return an idempotency key as a client makes it."""
    return str(uuid4())
