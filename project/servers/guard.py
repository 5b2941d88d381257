"""Run one server, and end it when whoever asked for it is gone.

Runs as a script of its own, between a program and a server that the program needs::

    python guard.py --folder F [--user UID:GID] [--stop-signal N] -- COMMAND…

Standard input is a pipe whose other end only the program holds. The program steers through it:

- a byte is the number of a signal, which is sent to the server;
- end of file means that the program wants the server gone, or is gone itself, SIGKILL included:
  the server is stopped, and the folder removed.

When the server ends by itself the guard ends with its exit status and leaves the folder, so that
the program can read the log or start it again. The server in turn is killed by the kernel if the
guard is (Linux only). So nothing is left behind unless all three are killed at once.

It imports nothing but the standard library, and can be started with `-I -S`: start-up time counts.
"""

import argparse
import ctypes
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable

STOP_SECONDS = 10.0
"""How long a server may take to stop when asked, before it is killed."""

PR_SET_PDEATHSIG = 1


def main() -> int:
    """Start the server, serve the pipe until one of the two ends, return the exit status."""
    parser = argparse.ArgumentParser(description="Run one server, and end it with its owner.")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--user", default="")
    parser.add_argument("--stop-signal", type=int, default=int(signal.SIGTERM))
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    # A terminal's Ctrl-C, or a `kill` of the whole group, must not end the server before its
    # owner has stopped using it: the end of the pipe is the only word the guard takes.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    child_ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)

    server = start(options.command, options.user)
    write_atomically(os.path.join(options.folder, "pid"), str(server))
    status = serve(server, child_ended)
    if status is None:
        status = stop(server, options.stop_signal)
        shutil.rmtree(options.folder, ignore_errors=True)
    return os.waitstatus_to_exitcode(status) & 0xFF


def start(command: list[str], user: str) -> int:
    """Fork and exec the server, as *user* ("uid:gid") if given; return its process id."""
    guard = os.getpid()
    set_death_signal = death_signal_setter()
    server = os.fork()
    if server:
        return server
    try:
        become(user)
        # After the change of user, which clears it.
        set_death_signal(signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)
        for restored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(restored, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.setsid()
        os.execv(command[0], command)
    except BaseException as error:
        os.write(2, f"cannot run {command[0]}: {error}\n".encode())
    os._exit(127)


def become(user: str) -> None:
    """Drop to "uid:gid" for good; nothing for an empty *user*."""
    if user:
        uid, gid = (int(part) for part in user.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)


def death_signal_setter() -> Callable[[int], None]:
    """Return a function that asks the kernel to signal this process when its parent dies."""
    if not sys.platform.startswith("linux"):
        return lambda _: None
    libc = ctypes.CDLL(None)
    return lambda number: libc.prctl(PR_SET_PDEATHSIG, number)


def write_atomically(path: str, text: str) -> None:
    """Write *text* so that a reader sees all of it or no file."""
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.rename(path + ".new", path)


def serve(server: int, child_ended: int) -> int | None:
    """Pass signals on until the server ends (its wait status) or the pipe does (None)."""
    while True:
        ready, _, _ = select.select([0, child_ended], [], [])
        if child_ended in ready:
            os.read(child_ended, 1024)
            pid, status = os.waitpid(server, os.WNOHANG)
            if pid:
                return status
        if 0 in ready:
            numbers = os.read(0, 64)
            if not numbers:
                return None
            for number in numbers:
                send(server, number)


def stop(server: int, stop_signal: int) -> int:
    """Ask the server to stop, kill it if it does not, return its wait status."""
    # A stopped process (SIGSTOP) takes no other signal until it goes on.
    send(server, signal.SIGCONT)
    send(server, stop_signal)
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        pid, status = os.waitpid(server, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.01)
    # It leads a group of its own (setsid above), so its children go with it.
    os.killpg(server, signal.SIGKILL)
    return os.waitpid(server, 0)[1]


def send(server: int, number: int) -> None:
    """Signal the server, which may have ended but is not yet reaped."""
    try:
        os.kill(server, number)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    sys.exit(main())
