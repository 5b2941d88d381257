"""``jobs audit``: prove on any installation that the promise has been kept."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.core.management.base import CommandError
from django.db.models import Model

from jobqueue.engine.audit import CHECKS, DUPLICATE_EFFECT, Violation, audit, duplicate_effects
from jobqueue.engine.counts import numbered
from jobqueue.management.formats import whole
from jobqueue.management.jobs_commands.base import Shell, Subcommand, add_json
from jobqueue.management.jobs_commands.table import printable

DEFAULT_LIMIT = 20
MAX_LIMIT = 100_000

Effects = tuple[type[Model], str]


class Audit(Subcommand):
    """Prints what `jobqueue.engine.audit` finds."""

    name = "audit"
    help = (
        "Look for broken promises: double or missing successes, stale fences, gaps in the "
        "attempts, lost, stuck and orphaned jobs. Only reads. Exits 1 if it finds any."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--effects",
            action="append",
            default=[],
            metavar="APP.MODEL.FIELD",
            help="also count doubles of this field of a table of yours, which names the job (or "
            "order, or key) that a row is the effect of; may be given more than once",
        )
        parser.add_argument(
            "--limit",
            type=whole(1, MAX_LIMIT),
            default=DEFAULT_LIMIT,
            help=f"violations listed for each check (default: {DEFAULT_LIMIT})",
        )
        add_json(parser)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        effects = [_effects(text) for text in options["effects"]]
        found = list(_find(shell, effects, options["limit"]))
        shell.progress("")
        if options["json"]:
            _write_json(shell, found, options)
        else:
            _write(shell, found, options["limit"], len(CHECKS) + len(effects))
        if found:
            raise CommandError(f"The audit found {numbered(len(found), 'violation')}.")


def _find(shell: Shell, effects: Sequence[Effects], limit: int) -> Iterator[Violation]:
    shell.progress(f"looking at the jobs and their attempts ({len(CHECKS)} checks) …")
    yield from audit(shell.storage, limit=limit)
    for n, (model, field) in enumerate(effects, 1):
        shell.progress(f"counting effects in {model._meta.label}.{field} ({n}/{len(effects)}) …")
        yield from duplicate_effects(model, field, using=shell.database, limit=limit)


def _effects(text: str) -> Effects:
    """Return the model and field that APP.MODEL.FIELD names."""
    parts = text.split(".")
    if len(parts) != 3:
        raise CommandError(
            f"--effects takes APP.MODEL.FIELD, such as shop.Charge.job_id; not {text!r}."
        )
    label, name, field = parts
    try:
        model = apps.get_model(label, name)
        model._meta.get_field(field)
    except LookupError as error:
        raise CommandError(f"--effects {text}: {error}") from None
    except FieldDoesNotExist:
        fields = ", ".join(sorted(f.name for f in model._meta.concrete_fields))
        raise CommandError(
            f"--effects {text}: {model._meta.label} has no field {field!r}; it has {fields}."
        ) from None
    return model, field


def _write_json(shell: Shell, found: Sequence[Violation], options: Mapping[str, Any]) -> None:
    counts = Counter(violation.check for violation in found)
    shell.write_json(
        {
            "count": len(found),
            "truncated": _truncated(counts, options["limit"]),
            "checks": {name: counts[name] for name in (*CHECKS, DUPLICATE_EFFECT)},
            "effects": options["effects"],
            "violations": [asdict(violation) for violation in found],
        }
    )


def _write(shell: Shell, found: Sequence[Violation], limit: int, checks: int) -> None:
    if not found:
        shell.write(shell.style.SUCCESS(f"Nothing found: {checks} checks passed."))
        return
    counts = Counter(violation.check for violation in found)
    more = _truncated(counts, limit)
    for check, count in counts.items():
        number = f"{count} or more" if check in more else str(count)
        meaning = CHECKS.get(check, "An effect happened more than once.")
        shell.write(shell.style.ERROR(f"{check}: {number}") + f"  {meaning}")
        for violation in found:
            if violation.check == check:
                shell.write(f"  {violation.job_id or '–'}  {printable(violation.detail)}")


def _truncated(counts: Counter[str], limit: int) -> list[str]:
    """Return the checks that found as many as were asked for, so that there may be more."""
    return [check for check, count in counts.items() if count >= limit]
