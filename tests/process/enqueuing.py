"""A program that enqueues: ``python -m tests.process.enqueuing COUNT``; every other job writes."""

import sys

import django


def main() -> None:
    """Enqueue one job after the other, each in a transaction of its own."""
    django.setup()
    from tests.process.tasks import nothing, write

    for number in range(int(sys.argv[1])):
        (write if number % 2 else nothing).enqueue()


if __name__ == "__main__":
    main()
