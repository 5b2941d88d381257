"""No orphans: find every process that the demo started, wherever it ended up, and end it.

A worker whose supervisor was killed belongs to nobody's process group or child list any more.
What it cannot lose is its environment, so everything that the demo starts inherits a token there.
"""

import os

import psutil

TOKEN = "JOBQUEUE_DEMO_TOKEN"
TERM_SECONDS = 3.0
"""How long processes may take to end by themselves before they are killed."""


def started_by(token: str) -> list[psutil.Process]:
    """Return the live processes but this one whose token begins with `token`."""
    found = []
    for process in psutil.process_iter():
        try:
            value = process.environ().get(TOKEN, "")
        except (psutil.Error, OSError):
            continue  # gone meanwhile, or somebody else's
        if value.startswith(token) and process.pid != os.getpid():
            found.append(process)
    return found


def sweep(token: str) -> int:
    """End all processes of `token`, frozen ones too, and return how many there were.

    Twice, because a process may have started another one while the first look was taken.
    """
    count = 0
    for _ in range(2):
        processes = started_by(token)
        count += len(processes)
        _end(processes)
    return count


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        _signal(process.terminate)
        _signal(process.resume)  # a stopped process takes the signal only once it runs
    _, stubborn = psutil.wait_procs(processes, timeout=TERM_SECONDS)
    for process in stubborn:
        _signal(process.kill)
    psutil.wait_procs(stubborn, timeout=TERM_SECONDS)


def _signal(send) -> None:
    try:
        send()
    except psutil.Error:
        pass  # it ended first
