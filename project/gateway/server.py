"""The HTTP side: `POST /charges` and `POST /mails`, each with an `Idempotency-Key` header.

Body: a JSON object with `reference`. Answers: 200 `{"id": …}`; 400 without a key or reference;
404 for another path; 409 when the key was used for another reference; 500 for a planned fault.
"""

import json
import socket
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from project.gateway.faults import Fault, FaultPlan
from project.gateway.ledger import KeyReusedError, Ledger

KINDS = {"/charges": "charge", "/mails": "mail"}
MAX_BODY_BYTES = 64 * 1024
"""More than any request of the shop; a larger one is cut and so refused as not being JSON."""


class GatewayServer(ThreadingHTTPServer):
    """Serve on `listener`, a bound socket that the caller made: its port is known beforehand."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, ledger: Ledger, plan: FaultPlan) -> None:
        super().__init__(listener.getsockname()[:2], GatewayHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.ledger = ledger
        self.plan = plan
        self.server_activate()


class GatewayHandler(BaseHTTPRequestHandler):
    server: GatewayServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Deliver, then answer as the plan for this delivery says."""
        reference = self._reference()
        key = self.headers.get("Idempotency-Key", "")
        kind = KINDS.get(self.path)
        if kind is None:
            self._answer(HTTPStatus.NOT_FOUND, {"error": f"Post to one of {', '.join(KINDS)}."})
        elif not key or not reference:
            error = "Send an Idempotency-Key header and a JSON body with a reference."
            self._answer(HTTPStatus.BAD_REQUEST, {"error": error})
        else:
            self._deliver(kind, key, reference)

    def _deliver(self, kind: str, key: str, reference: str) -> None:
        ledger = self.server.ledger
        try:
            delivery = ledger.deliver(kind, key, reference)
        except KeyReusedError as error:
            self._answer(HTTPStatus.CONFLICT, {"error": str(error)})
            return
        fault = self.server.plan.fault_of(delivery.number)
        if fault is Fault.ERROR:
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "Something broke here."})
            return
        if fault is Fault.LATE:
            time.sleep(self.server.plan.late_seconds)
        self._answer(HTTPStatus.OK, {"id": ledger.receipt(delivery)})

    def _reference(self) -> str:
        length = min(int(self.headers.get("Content-Length") or 0), MAX_BODY_BYTES)
        try:
            body = json.loads(self.rfile.read(length))
        except ValueError:
            return ""
        return str(body.get("reference", "")) if isinstance(body, dict) else ""

    def _answer(self, status: HTTPStatus, body: dict[str, str]) -> None:
        content = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except ConnectionError:
            self.close_connection = True  # the client gave up waiting: what LATE is for

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the ledger is the record."""
