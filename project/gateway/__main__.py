"""Run the gateway: `python -m project.gateway --ledger ledger.jsonl --port 8100`."""

import argparse
import signal
import socket
import sys
from pathlib import Path

from project.gateway.faults import FaultPlan
from project.gateway.ledger import Ledger
from project.gateway.server import GatewayServer


def main() -> None:
    """Serve until TERM or INT."""
    options = parse_arguments()
    plan = FaultPlan(
        seed=options.seed,
        late_rate=options.late_rate,
        error_rate=options.error_rate,
        late_seconds=options.late_seconds,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ledger = Ledger(options.ledger)
    server = GatewayServer(listening_socket(options.fd, options.host, options.port), ledger, plan)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        ledger.close()


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m project.gateway", description=__doc__)
    default = FaultPlan()
    where = parser.add_mutually_exclusive_group()
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    where.add_argument("--port", type=int, default=8100, help="port to listen on")
    where.add_argument("--fd", type=int, help="a bound socket inherited from the caller")
    parser.add_argument("--ledger", type=Path, required=True, help="file of all deliveries")
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--late-rate", type=float, default=default.late_rate)
    parser.add_argument("--error-rate", type=float, default=default.error_rate)
    parser.add_argument("--late-seconds", type=float, default=default.late_seconds)
    return parser.parse_args()


def listening_socket(fd: int | None, host: str, port: int) -> socket.socket:
    """Return the inherited socket, or a new one."""
    if fd is not None:
        return socket.socket(fileno=fd)
    return socket.create_server((host, port))


if __name__ == "__main__":
    main()
