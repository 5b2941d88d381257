"""One server process: a free port, a private folder, an unprivileged user, a certain end.

`ServerProcess` is what PostgreSQL, Redis and PgBouncer have in common. It promises that

- the server listens on 127.0.0.1 only (each subclass's command says so);
- everything it writes lies in one temporary folder that is removed with it;
- it does not run as root, even if we do;
- it ends when this process ends, by `stop()`, at exit, or by SIGKILL (`guard.py` watches).

It does not keep a server alive: one that dies stays dead until `restart()`.
"""

import atexit
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

START_SECONDS = 60.0
"""How long a server may take until it accepts connections; a busy machine is slow at it."""

STOP_SECONDS = 20.0
"""How long to wait for the guard; it kills a server that does not stop well before."""

PORT_TRIES = 10
"""Free ports to try: between finding one and binding it, another process may take it."""

LOG_TAIL_LINES = 30
GUARD = Path(__file__).with_name("guard.py")
LOOPBACK = "127.0.0.1"


class ServerError(RuntimeError):
    """A server did not start, or did not do what was asked."""


class ServerUnavailable(ServerError):
    """This machine has no binary for the server; the message says how to get one."""


class ServerProcess:
    """A server that a subclass describes and this class runs.

    Subclasses say `name`, `prepare()`, `command()` and `is_ready()`, and may change
    `stop_signal`.
    """

    name: str
    stop_signal = signal.SIGTERM

    def __init__(self, *, port: int | None = None) -> None:
        self.port = port or 0
        self.fixed_port = port is not None
        self.folder: Path | None = None
        self.guard: subprocess.Popen[bytes] | None = None
        self.owner = 0

    # What a subclass says

    def prepare(self, folder: Path) -> None:
        """Fill the folder before the first start."""

    def command(self, folder: Path) -> list[str]:
        """Return the absolute path of the binary, and its arguments; the port is known."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Return whether the server takes work now."""
        return can_connect(self.port)

    @property
    def url(self) -> str:
        """Where clients connect."""
        raise NotImplementedError

    # What everybody uses

    def start(self) -> str:
        """Start the server on a free port and return its URL once it takes connections.

        Raise ServerError with the end of the server's log if it does not.
        """
        if self.folder is not None:
            raise ServerError(f"{self.name} is already started")
        self.folder = make_folder(self.name)
        self.owner = os.getpid()
        atexit.register(self.stop)
        try:
            self.prepare(self.folder)
            self._start_on_some_port()
        except BaseException:
            self.stop()
            raise
        return self.url

    def stop(self) -> None:
        """Stop the server and remove its folder; nothing if it is not started."""
        atexit.unregister(self.stop)
        if os.getpid() != self.owner:
            # A forked copy of the owner ends: the server is not its to stop.
            return
        if self.guard is not None:
            self._close_pipe()
            self._wait_for_guard()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = None

    def restart(self, how: signal.Signals | None = None) -> None:
        """End the server by the signal *how* and start it on the same port and data."""
        self.halt(how)
        self.resume()

    def halt(self, how: signal.Signals | None = None) -> None:
        """End the server by the signal *how* (its stop signal), keeping port and data."""
        self.send_signal(how or self.stop_signal)
        self._wait_for_guard()

    def resume(self) -> None:
        """Start a halted or dead server again on its port and data."""
        if self.is_running:
            raise ServerError(f"{self.name} is still running")
        self._wait_for_guard()
        self._run_until_ready()

    def send_signal(self, number: int) -> None:
        """Send the server a signal, SIGSTOP and SIGKILL included; do not wait."""
        if self.guard is None or self.guard.stdin is None or not self.is_running:
            raise ServerError(f"{self.name} is not running")
        self.guard.stdin.write(bytes([number]))
        self.guard.stdin.flush()

    @property
    def is_running(self) -> bool:
        """Whether the server's process exists."""
        return self.guard is not None and self.guard.poll() is None

    @property
    def pid(self) -> int:
        """The server's own process id (not the guard's)."""
        return int((self._folder() / "pid").read_text())

    @property
    def log_path(self) -> Path:
        """The file the server logs to; gone after `stop()`."""
        return self._folder() / "log"

    def log_tail(self) -> str:
        """Return the last lines of the server's log."""
        try:
            lines = self.log_path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(lines[-LOG_TAIL_LINES:]) or "(empty log)"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # How it is done

    def _folder(self) -> Path:
        if self.folder is None:
            raise ServerError(f"{self.name} is not started")
        return self.folder

    def _start_on_some_port(self) -> None:
        for tries_left in reversed(range(PORT_TRIES)):
            if not self.fixed_port:
                self.port = free_port()
            try:
                self._run_until_ready()
                return
            except ServerError:
                port_was_taken = "already in use" in self.log_tail().lower()
                if self.fixed_port or not port_was_taken or not tries_left:
                    raise

    def _run_until_ready(self) -> None:
        folder = self._folder()
        (folder / "pid").unlink(missing_ok=True)
        with open(self.log_path, "ab") as log:
            self.guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), *self._guard_options(folder)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=server_environment(folder),
                # Ctrl-C in the terminal reaches us only; we then stop servers in order.
                start_new_session=True,
            )
        wait_until(self._is_settled, START_SECONDS)
        if not self._is_up():
            message = f"{self.name} did not start:\n{self.log_tail()}"
            self._end_guard_keeping_folder()
            raise ServerError(message)

    def _guard_options(self, folder: Path) -> list[str]:
        user = unprivileged_user()
        options = ["--folder", str(folder), "--stop-signal", str(int(self.stop_signal))]
        if user is not None:
            options += ["--user", f"{user.pw_uid}:{user.pw_gid}"]
        return [*options, "--", *self.command(folder)]

    def _is_settled(self) -> bool:
        return not self.is_running or self._is_up()

    def _is_up(self) -> bool:
        # The process first: on a fixed port somebody else's server might answer.
        return self.is_running and (self._folder() / "pid").exists() and self.is_ready()

    def _end_guard_keeping_folder(self) -> None:
        if self.is_running:
            self.send_signal(signal.SIGKILL)
        self._wait_for_guard()

    def _close_pipe(self) -> None:
        if self.guard is not None and self.guard.stdin is not None:
            self.guard.stdin.close()

    def _wait_for_guard(self) -> None:
        if self.guard is None:
            return
        try:
            self.guard.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            # The kernel then kills the server, see guard.py.
            self.guard.kill()
            self.guard.wait()
        self._close_pipe()
        self.guard = None


def make_folder(name: str) -> Path:
    """Make a private temporary folder that the server's user owns."""
    folder = Path(tempfile.mkdtemp(prefix=f"jobqueue-{name}-"))
    give_to_server(folder)
    return folder


def give_to_server(path: Path) -> None:
    """Hand a file or folder to the user the server runs as."""
    user = unprivileged_user()
    if user is not None:
        os.chown(path, user.pw_uid, user.pw_gid)


def unprivileged_user() -> pwd.struct_passwd | None:
    """Return the user a server runs as if we are root, else None (it runs as ourselves).

    PostgreSQL and PgBouncer refuse to run as root, and want a user that has a name.
    """
    if os.geteuid() != 0:
        return None
    for name in ("nobody", "daemon"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServerError("root has to hand servers to another user, and there is no 'nobody'")


def may_execute(binary: Path) -> bool:
    """Return whether the server's user can reach and run a file.

    A checkout below a closed home directory is the usual reason why not.
    """
    user = unprivileged_user()
    if user is None:
        return os.access(binary, os.X_OK)
    probe = subprocess.run(
        ["/bin/sh", "-c", 'test -x "$0"', str(binary)],
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        check=False,
    )
    return probe.returncode == 0


def server_environment(folder: Path) -> dict[str, str]:
    """Return a small environment: a caller's PGHOST or LANG must not change a server."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", "HOME": str(folder)}


def free_port() -> int:
    """Return a loopback port nobody listens on.

    It lies below the range that the kernel hands to outgoing connections. Inside that range a
    client that keeps dialing a restarting server may be given the server's own port, connect to
    itself and so keep the server from coming back.
    """
    lowest, highest = 15_000, first_ephemeral_port() - 1
    for _ in range(1000):
        port = random.randint(lowest, highest)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise ServerError(f"no free port between {lowest} and {highest}")


def first_ephemeral_port() -> int:
    """Return the first port of the kernel's range for outgoing connections."""
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = 32_768
    return first if first > 16_000 else 32_768


def can_connect(port: int) -> bool:
    """Return whether something accepts connections on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition; return whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
