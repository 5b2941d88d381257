"""A TCP proxy on loopback that loses connections at a chosen byte, as networks do.

It forwards everything, so that sessions through it are direct ones to both sides, until a `Cut`
fires: once, at the first message of a client that contains `at`, on a connection that has
carried `after` before.

    BEFORE   the message never arrives, and both sides lose the connection
    AFTER    the message arrives and is answered; the client loses the connection instead
             (only if the answer contains `answer`: else it passes, and the cut is still to come)
    HELD     the client loses the connection; the message arrives when the test releases it
    HALF     the message and its answer arrive; then only the client loses the connection, and
             the server keeps a session that nobody uses until the test releases it
"""

import selectors
import socket
import threading
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from tests.waiting import PATIENCE_SECONDS

CHUNK_BYTES = 256 * 1024
TAIL_BYTES = 16 * 1024
"""What is remembered of a connection's last bytes: statements before the one to lose."""


class How(Enum):
    """What is lost; see the module docstring."""

    BEFORE = "before it arrives"
    AFTER = "after it is answered"
    HELD = "and it arrives late"
    HALF = "on the client's side"


@dataclass(eq=False)
class Cut:
    """One loss to come; `fired` once it has."""

    at: bytes
    how: How
    after: bytes = b""
    answer: bytes = b""
    fired: threading.Event = field(default_factory=threading.Event)

    def happens(self) -> bool:
        """Return whether it has fired; others may see a COMMIT before its answer is here."""
        return self.fired.wait(PATIENCE_SECONDS)


@dataclass(eq=False)
class Pair:
    """One connection: the client's side, the server's, and what happens to it."""

    client: socket.socket | None
    server: socket.socket | None
    tail: bytes = b""
    cut: Cut | None = None
    held: bytes = b""


class Proxy:
    """Listens on a free port of loopback in front of the server at `url`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._wake, self._woken = socket.socketpair()
        self._pairs: set[Pair] = set()
        self._cuts: list[Cut] = []
        self._lock = threading.Lock()
        self._ending = False
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="proxy", daemon=True)

    def url(self, url: str) -> str:
        """Return `url` with this proxy in the server's place."""
        parts = urlsplit(url)
        credentials = parts.netloc.rpartition("@")[0]
        port = self._listener.getsockname()[1]
        return parts._replace(netloc=f"{credentials}@127.0.0.1:{port}").geturl()

    def __enter__(self) -> "Proxy":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending = True
        self._wake.send(b"x")
        self._thread.join()
        for pair in list(self._pairs):
            self._drop(pair)
        for each in (self._listener, self._wake, self._woken):
            each.close()
        self._selector.close()

    # --- what a test does -------------------------------------------------------------------------

    def cut(self, at: bytes, how: How, after: bytes = b"", answer: bytes = b"") -> Cut:
        """Lose the next connection on which a client sends `at`, having sent `after` before."""
        cut = Cut(at, how, after, answer)
        with self._lock:
            self._cuts.append(cut)
        return cut

    def release(self, cut: Cut) -> None:
        """Send on what was held, and let the server see the end of the connection."""
        with self._lock:
            pairs = [pair for pair in self._pairs if pair.cut is cut]
            for pair in pairs:
                if pair.held and pair.server:
                    pair.server.sendall(pair.held)
                self._drop(pair)

    # --- the thread -------------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self._ending:
            for key, _ in self._selector.select():
                with self._lock:
                    self._turn(key)

    def _turn(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._listener:
            self._accept()
        elif key.data in self._pairs:
            self._forward(key.data, key.fileobj)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        pair = Pair(client, server)
        self._pairs.add(pair)
        for side in (client, server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(side, selectors.EVENT_READ, pair)

    def _forward(self, pair: Pair, source: object) -> None:
        try:
            data = source.recv(CHUNK_BYTES)
            if not data:
                self._drop(pair)
            elif source is pair.client:
                self._from_client(pair, data)
            else:
                self._from_server(pair, data)
        except OSError:
            self._drop(pair)

    def _from_client(self, pair: Pair, data: bytes) -> None:
        pair.tail = (pair.tail + data)[-max(TAIL_BYTES, len(data)) :]
        cut = self._due(pair.tail, len(data))
        if cut is None:
            pair.server.sendall(data)
            return
        pair.cut = cut
        if cut.how is How.BEFORE:
            self._drop(pair)
        elif cut.how is How.HELD:
            pair.held = data
            self._close(pair, "client")
        else:
            pair.server.sendall(data)
            return  # it fires with the answer
        cut.fired.set()

    def _from_server(self, pair: Pair, data: bytes) -> None:
        if pair.cut is None:
            pair.client.sendall(data)
            return
        if pair.cut.how is How.AFTER:
            if pair.cut.answer not in data:
                self._cuts.append(pair.cut)
                pair.cut = None
                pair.client.sendall(data)
                return
            self._drop(pair)
        elif pair.client is not None:
            pair.client.sendall(data)
            self._close(pair, "client")
        pair.cut.fired.set()

    def _due(self, tail: bytes, new: int) -> Cut | None:
        """Return the cut that the last `new` bytes of a client set off, if any."""
        for cut in self._cuts:
            # A message may come in two pieces, the first of which was old already.
            position = tail.find(cut.at, max(len(tail) - new - len(cut.at) + 1, 0))
            if position >= 0 and cut.after in tail[:position]:
                self._cuts.remove(cut)
                return cut
        return None

    def _drop(self, pair: Pair) -> None:
        self._close(pair, "client")
        self._close(pair, "server")
        self._pairs.discard(pair)

    def _close(self, pair: Pair, side: str) -> None:
        open_socket = getattr(pair, side)
        if open_socket is not None:
            self._selector.unregister(open_socket)
            open_socket.close()
            setattr(pair, side, None)
