"""`manage.py demo`: orders under kill -9, and an audit of what became of them."""

import argparse
import os
import sys

from django.core.management.base import CommandError

from jobqueue.management.endings import QuietCommand
from project.demo.options import COULD_NOT_RUN, INTERRUPTED, DemoError, DemoOptions

ON = ("on", "1", "true", "yes")
OFF = ("off", "0", "false", "no")


class Command(QuietCommand):
    help = (
        "Run a shop on real processes, kill and freeze its workers, and show by audit that every "
        "order was worked off exactly once. Exit 1 if not, 2 if it could not run. Each option can "
        "also be given as an environment variable of its name (ORDERS=50)."
    )
    requires_system_checks = ()  # the settings of this process are not those of the run

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        default = DemoOptions()
        env = os.environ.get
        parser.add_argument(
            "--orders", type=int, default=env("ORDERS") or default.orders, help="orders to post"
        )
        parser.add_argument(
            "--kill-every",
            type=float,
            default=env("KILL_EVERY") or default.kill_every,
            help="seconds between two kills, 0 for none",
        )
        parser.add_argument(
            "--fail-rate",
            type=float,
            default=env("FAIL_RATE") or default.fail_rate,
            help="fraction of attempts that fail on purpose",
        )
        parser.add_argument(
            "--guard",
            type=switch,
            default=env("GUARD") or "on",
            help="off: workers finish jobs without looking whose they are; the audit must fail",
        )
        parser.add_argument(
            "--seed",
            type=int,
            default=env("SEED") or default.seed,
            help="of the gateway's faults and the choice of victims",
        )
        parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)

    def handle(self, *args, **options) -> None:
        names = ("orders", "kill_every", "fail_rate", "guard", "seed")
        try:
            code = self.run_part(
                DemoOptions(**{name: options[name] for name in names}), inner=options["inner"]
            )
        except DemoError as error:
            raise CommandError(str(error), returncode=COULD_NOT_RUN) from error
        except KeyboardInterrupt:
            code = INTERRUPTED
        sys.exit(code)

    def run_part(self, options: DemoOptions, *, inner: bool) -> int:
        """Run the inner or the outer process; each imports only what it needs."""
        if inner:
            from project.demo.show import show

            return show(options)
        from project.demo.launcher import launch

        return launch(options)


def switch(text: str) -> bool:
    """Read on or off. Anything else is an error: a typo must not disarm the guard."""
    if text.lower() in ON:
        return True
    if text.lower() in OFF:
        return False
    raise argparse.ArgumentTypeError(f"must be on or off, not {text!r}")
