"""A real server over loopback in this process: many threads, each with connections of its own."""

import copy
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from django.core.handlers.wsgi import WSGIHandler
from django.db import connections

THREADS = 32
"""As many requests are in the database at once; more clients wait for their turn."""


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing: the tests look at the answers."""


class _Server(WSGIServer):
    request_queue_size = 256
    pool: ThreadPoolExecutor

    def process_request(self, request: Any, client_address: Any) -> None:
        self.pool.submit(self._serve, request, client_address)

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)
            connections.close_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        raise


@contextmanager
def server(**database: Any) -> Iterator[int]:
    """Serve the project on a free port while the default database has these settings."""
    settings = connections.settings["default"]
    before = copy.deepcopy(settings)
    settings.update(database)
    pool = ThreadPoolExecutor(THREADS)
    httpd = _Server(("127.0.0.1", 0), _Handler)
    httpd.pool = pool
    httpd.set_app(WSGIHandler())
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield httpd.server_address[1]
    finally:
        httpd.shutdown()
        thread.join()
        pool.shutdown()
        httpd.server_close()
        settings.clear()
        settings.update(before)


def post(port: int, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict, bytes]:
    """Send one request on a connection of its own; return status, headers and body."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"} | headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()
