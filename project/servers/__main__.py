"""Start PostgreSQL and, if there is one, Redis; print how to use them; wait for Ctrl-C.

Usage: python -m project.servers [--not-durable]
"""

import argparse
import signal

from project.servers import PostgresServer, RedisServer


def main() -> None:
    """Run the servers until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m project.servers", description=__doc__)
    parser.add_argument("--not-durable", action="store_true", help="skip every fsync")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)

    with PostgresServer(durable=not options.not_durable) as postgres:
        print(f"export DATABASE_URL={postgres.url}", flush=True)
        if not RedisServer.available():
            print("# no Redis on this machine: hints will go over PostgreSQL", flush=True)
            wait_for_interrupt()
            return
        with RedisServer() as redis:
            print(f"export REDIS_URL={redis.url}", flush=True)
            wait_for_interrupt()


def wait_for_interrupt() -> None:
    """Wait for Ctrl-C or SIGTERM."""
    print("# Ctrl-C ends the servers and removes their data", flush=True)
    try:
        while True:
            signal.pause()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
