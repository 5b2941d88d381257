"""Viewers of the live page, in a process of their own: some read, one does not.

    python -m benchmarks.audience PORT VIEWERS < cookies

Each keeps what it was told, as the page does: rows by id, patched by versions, and asked for anew
after a ``resync``. It answers lines on its standard input with a line of JSON: ``ready`` once all
have had their first events, ``report`` with the frames so far, ``agree IDS`` with what each knows
of jobs.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections import defaultdict
from typing import Any

import websockets

PAGE = 50
TOPICS = ("stats", "queues", "workers", "jobs")
SUBSCRIPTIONS = 8
"""Of the one that does not read: as many as there may be, so that the most is sent to it."""


class Viewer:
    """One page that is open."""

    def __init__(self) -> None:
        self.jobs: dict[str, tuple[int, str]] = {}
        self.stats: dict[str, Any] = {}
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.resyncs = 0

    async def watch(self, url: str, cookie: str, origin: str) -> None:
        """Read for ever."""
        headers = {"Cookie": cookie}
        async with websockets.connect(url, additional_headers=headers, origin=origin) as ws:
            for topic in TOPICS:
                params = {"filter": "", "watch": {}, "size": PAGE} if topic == "jobs" else {}
                message = {"type": "subscribe", "id": topic, "topic": topic, "params": params}
                await ws.send(json.dumps(message))
            async for text in ws:
                self.hear(json.loads(text))

    def hear(self, frame: dict[str, Any]) -> None:
        """Keep what a frame tells."""
        if frame["type"] == "resync":
            self.resyncs += 1
        if frame["type"] != "event":
            return
        self.times[frame["id"]].append(time.monotonic())
        if frame["id"] == "stats":
            self.stats |= frame["changes"]
        if frame["id"] == "jobs":
            for change in frame["changes"]:
                self.jobs[change["id"]] = (change.get("version", 0), change.get("state", ""))

    @property
    def is_ready(self) -> bool:
        """Whether every subscription was answered."""
        return len(self.times) == len(TOPICS)

    def busiest(self) -> int:
        """Return the most events of one subscription that came within a second."""
        most = 0
        for times in self.times.values():
            for position, at in enumerate(times):
                within = sum(1 for later in times[position:] if later - at < 1.0)
                most = max(most, within)
        return most


async def freeze(port: int, url: str, cookie: str, origin: str) -> None:
    """Subscribe to as much as possible, and read nothing of it: the buffers are small, too."""
    plug = socket.socket()
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    plug.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plug, ("127.0.0.1", port))
    ws = await websockets.connect(
        url,
        sock=plug,
        additional_headers={"Cookie": cookie},
        origin=origin,
        ping_interval=None,
        max_queue=1,
    )
    for number in range(SUBSCRIPTIONS):
        params = {"filter": "", "size": PAGE}
        message = {"type": "subscribe", "id": str(number), "topic": "jobs", "params": params}
        await ws.send(json.dumps(message))
    ws.transport.pause_reading()
    await asyncio.Event().wait()


async def main(port: int, count: int) -> None:
    """Open all, and answer."""
    url, origin = f"ws://127.0.0.1:{port}/jobqueue/ws/", f"http://127.0.0.1:{port}"
    cookies = [sys.stdin.readline().strip() for _ in range(count)]
    viewers = [Viewer() for _ in cookies[1:]]
    tasks = [asyncio.create_task(freeze(port, url, cookies[0], origin))]
    tasks += [
        asyncio.create_task(viewer.watch(url, cookie, origin))
        for viewer, cookie in zip(viewers, cookies[1:], strict=True)
    ]
    while line := (await asyncio.to_thread(sys.stdin.readline)).split():
        failed = [task for task in tasks if task.done()]
        answer = {
            "ready": lambda: all(viewer.is_ready for viewer in viewers),
            "report": lambda: {
                "frames": sum(len(t) for viewer in viewers for t in viewer.times.values()),
                "busiest": max(viewer.busiest() for viewer in viewers),
                "resyncs": sum(viewer.resyncs for viewer in viewers),
            },
            "agree": lambda: [
                [viewer.stats["counts"], {id: viewer.jobs.get(id) for id in line[1:]}]
                for viewer in viewers
            ],
        }[line[0]]()
        result = {"answer": answer, "failed": [repr(task.exception()) for task in failed[1:]]}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
