"""Writes the parts of the reference that the code itself knows.

    python -m docs.generate            # rewrites the files
    python -m docs.generate --check    # says which are out of date, and exits 1

The OpenAPI document of the HTTP API (openapi.json) is made as a whole. In the other files a part lies
between ``<!-- generated: NAME -->`` and ``<!-- end -->`` in a file of docs/reference/;
everything outside is written by hand. A test compares the committed files with what this makes.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parent / "reference"
PART = re.compile(r"(<!-- generated: ([a-z0-9 _-]+) -->\n).*?(<!-- end -->)", re.S)

NOT_USED_YET: set[str] = set()
"""Options that are read and checked, and that nothing obeys yet."""


# --- options --------------------------------------------------------------------------------------


def options_table() -> Iterator[str]:
    """Return the table of the engine's options, from the fields of `jobqueue.conf.Options`."""
    from jobqueue.conf import Options

    yield "| option | default | what it is, with its unit and reason |"
    yield "| --- | --- | --- |"
    for option in fields(Options):
        name, doc = option.name, option.metadata["doc"]
        if name in NOT_USED_YET:
            doc += " Planned: nothing obeys it yet."
        yield f"| `{name.upper()}` | {default_text(option)} | {escaped(doc)} |"


def default_text(option: Field) -> str:
    """Return an option's default as it would be written in the settings."""
    if option.name == "retry":
        return "`Backoff()`"
    if option.name == "redis_url":
        return "the variable `REDIS_URL`, else `None`"
    if option.name == "retention":
        return "succeeded 7 days, cancelled 30 days, dead kept"
    if option.name == "action_retention":
        return "365 days"
    value: Any = option.default if option.default is not MISSING else option.default_factory()
    if option.name == "schedules":
        return "`{}`"
    if isinstance(value, tuple):
        return f"`{list(value)!r}`".replace("'", '"')
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"`{value!r}`" if not isinstance(value, str) else f'`"{value}"`'
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def api_options_table() -> Iterator[str]:
    """Return the table of the API's options, from the fields of `jobqueue.surfaces.ApiOptions`."""
    from jobqueue.surfaces import DEFAULT_THROTTLES, ApiOptions

    yield "| option | default | what it is, with its unit and reason |"
    yield "| --- | --- | --- |"
    for option in fields(ApiOptions):
        default = f"`{DEFAULT_THROTTLES}`" if option.name == "throttles" else default_text(option)
        yield f"| `{option.name.upper()}` | {default} | {escaped(option.metadata['doc'])} |"


def live_options_table() -> Iterator[str]:
    """Return the table of the live page's options, from the fields of `LiveOptions`."""
    from jobqueue.surfaces import LiveOptions

    yield from plain_options_table(LiveOptions)


def admin_options_table() -> Iterator[str]:
    """Return the table of the admin's options, from the fields of `AdminOptions`."""
    from jobqueue.surfaces import AdminOptions

    yield from plain_options_table(AdminOptions)


def plain_options_table(options: type) -> Iterator[str]:
    """Return the table of a surface's options."""
    yield "| option | default | what it is, with its unit and reason |"
    yield "| --- | --- | --- |"
    for option in fields(options):
        default, doc = default_text(option), escaped(option.metadata["doc"])
        yield f"| `{option.name.upper()}` | {default} | {doc} |"


# --- HTTP API -------------------------------------------------------------------------------------


def api_addresses() -> Iterator[str]:
    """Return every address of the API with what it does and who may."""
    from jobqueue.api import urls
    from jobqueue.api.access import OPEN, needs_of

    yield "| method | address | does | needs |"
    yield "| --- | --- | --- | --- |"
    for pattern in urls.urlpatterns:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            view = pattern.callback.cls
            needed = needs_of(view, method)
            if needed is None:
                continue
            first = (getattr(view, method.lower()).__doc__ or "").strip().split("\n\n")[0]
            who = "nothing" if needed.action == OPEN else "credentials"
            address = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern))
            permission = f"`{needed.permission}`" if needed.permission else who
            yield f"| {method} | `{address}` | {escaped(first)} | {permission} |"


def api_problems() -> Iterator[str]:
    """Return every problem that the API answers."""
    from jobqueue.api.problem_types import PROBLEMS

    yield "| code | status | when, and what to do |"
    yield "| --- | --- | --- |"
    for kind in sorted(PROBLEMS.values(), key=lambda kind: (kind.status, kind.code)):
        yield f"| `{kind.code}` | {kind.status} | {escaped(kind.meaning)} |"


# --- states ---------------------------------------------------------------------------------------


def states_diagram() -> Iterator[str]:
    """Return the state machine as a mermaid diagram: an arrow a pair of states, all its verbs."""
    from jobqueue.states import FINISHED, TRANSITIONS, State

    order = list(State)
    verbs: dict[tuple[str, str], list[str]] = {}
    for one in TRANSITIONS:
        if one.verb == "reschedule":
            continue  # between any two waiting states: drawn, it would hide the rest
        for source in sorted(one.sources, key=lambda s: -1 if s is None else order.index(s)):
            for target in sorted(one.targets, key=order.index):
                pair = ("[*]" if source is None else source.value, target.value)
                verbs.setdefault(pair, []).append(one.verb)
    yield "```mermaid"
    yield "stateDiagram-v2"
    for (source, target), names in verbs.items():
        yield f"    {source} --> {target}: {', '.join(names)}"
    yield from (f"    {state.value} --> [*]" for state in order if state in FINISHED)
    yield "```"


def states_table() -> Iterator[str]:
    """Return the transitions as a table."""
    from jobqueue.states import TRANSITIONS, State

    order = list(State)

    def named(states: frozenset[Any]) -> str:
        listed = sorted(states, key=lambda s: -1 if s is None else order.index(s))
        return ", ".join("–" if state is None else state.value for state in listed)

    yield "| verb | from | to | who | when |"
    yield "| --- | --- | --- | --- | --- |"
    for one in TRANSITIONS:
        row = (one.verb, named(one.sources), named(one.targets), one.who, one.when)
        yield f"| {' | '.join(escaped(text) for text in row)} |"


# --- commands -------------------------------------------------------------------------------------


def command_usage(name: str) -> Iterator[str]:
    """Return the help and the options of a command, such as "runworker" or "jobs list"."""
    from django.core.management import load_command_class

    first, _, part = name.partition(" ")
    parser = load_command_class("jobqueue", first).create_parser("manage.py", first)
    if part:
        (choices,) = (a.choices for a in parser._actions if isinstance(a.choices, dict))
        parser = choices[part]
    yield from (sentence.strip() for sentence in [parser.description or ""] if sentence.strip())
    rows = list(_arguments(parser, inherited=_common() if part else _django()))
    if rows:
        yield ""
        yield "| argument | meaning |"
        yield "| --- | --- |"
        yield from rows


def _arguments(parser: argparse.ArgumentParser, inherited: set[str]) -> Iterator[str]:
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or inherited & set(action.option_strings):
            continue
        if isinstance(action, argparse._SubParsersAction):
            continue
        name = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        if action.option_strings and action.nargs != 0:
            choices = action.choices and "|".join(map(str, action.choices))
            name += f" {action.metavar or choices or action.dest.upper()}"
        help_text = (action.help or "").replace("%%", "%")
        yield f"| `{escaped(name)}` | {escaped(help_text)} |"


def _django() -> set[str]:
    from django.core.management.base import BaseCommand

    parser = BaseCommand().create_parser("manage.py", "any")
    return {text for action in parser._actions for text in action.option_strings}


def _common() -> set[str]:
    """Return what every subcommand of `jobs` takes, which is said once."""
    return _django() | {"--backend", "--actor"}


def commands_list() -> Iterator[str]:
    """Return the subcommands of `jobs`, each with its first sentence."""
    from jobqueue.management.jobs_commands import SUBCOMMANDS

    yield "| command | does |"
    yield "| --- | --- |"
    for part in SUBCOMMANDS:
        first = part.help.split(". ")[0].rstrip(".")
        yield f"| [`jobs {part.name}`](#jobs-{part.name}) | {escaped(first)}. |"


# --- permissions ----------------------------------------------------------------------------------


def permissions_table() -> Iterator[str]:
    """Return the permissions, with what each allows."""
    from jobqueue.permissions import PERMISSION_OF

    yield "| permission | allows |"
    yield "| --- | --- |"
    for permission in dict.fromkeys(PERMISSION_OF.values()):
        actions = [f"`{action}`" for action, p in PERMISSION_OF.items() if p == permission]
        yield f"| `{permission}` | {', '.join(actions)} |"


# --- filters --------------------------------------------------------------------------------------


def filter_keys() -> Iterator[str]:
    """Return the keys of the filter language."""
    from jobqueue.filters import KEYS

    yield "| key | means | operators | for example |"
    yield "| --- | --- | --- | --- |"
    for key in KEYS.values():
        operators = " ".join(f"`{operator}`" for operator in key.operators)
        star = ", `*`" if key.has_patterns else ""
        yield f"| `{key.name}` | {escaped(key.meaning)} | {operators}{star} | `{key.example}` |"


# --- checks, audit, exit codes --------------------------------------------------------------------


def checks_table() -> Iterator[str]:
    """Return the table of system checks, which stands in the docstring of `jobqueue.checks`."""
    from jobqueue import checks

    lines = (checks.__doc__ or "").splitlines()
    yield from (line for line in lines if line.startswith("|"))


def audit_table() -> Iterator[str]:
    """Return what `jobs audit` looks for."""
    from jobqueue.engine.audit import CHECKS

    yield "| check | a violation means |"
    yield "| --- | --- |"
    yield from (f"| `{name}` | {escaped(meaning)} |" for name, meaning in CHECKS.items())


# --- files ----------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "options": options_table,
    "api options": api_options_table,
    "live options": live_options_table,
    "admin options": admin_options_table,
    "api addresses": api_addresses,
    "api problems": api_problems,
    "states diagram": states_diagram,
    "states table": states_table,
    "jobs": commands_list,
    "checks": checks_table,
    "filter keys": filter_keys,
    "permissions": permissions_table,
    "audit": audit_table,
}


def part_text(name: str) -> str:
    """Return the text of a part. Raise KeyError for a name that nothing makes."""
    if name.startswith("command "):
        return "\n".join(command_usage(name.removeprefix("command "))) + "\n"
    return "\n".join(PARTS[name]()) + "\n"


def renewed(text: str) -> str:
    """Return the text of a file with all its generated parts made anew."""
    return PART.sub(lambda m: m[1] + "\n" + part_text(m[2]) + "\n" + m[3], text)


def openapi() -> tuple[Path, str]:
    """Return where the OpenAPI document is committed, and what it has to be."""
    from jobqueue.api import document

    return document.FILE, document.as_text(document.made())


def escaped(text: str) -> str:
    """Return `text` as it can stand in a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def main() -> int:
    """Rewrite the files, or say which are out of date."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    stale = []
    for path in sorted(REFERENCE.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        new = renewed(text)
        if new != text:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    path, new = openapi()
    if not path.exists() or path.read_text(encoding="utf-8") != new:
        stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(new, encoding="utf-8")
    sys.stdout.write("\n".join(stale or ["everything is up to date"]) + "\n")
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
