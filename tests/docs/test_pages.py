"""Links lead somewhere, named tests exist, generated parts are up to date, every event is told."""

import ast
from pathlib import Path

import pytest

from docs import generate
from jobqueue.conf import Options
from jobqueue.states import FINISHED, State
from tests.docs.pages import PAGES, ROOT, anchors, blocks, links, name_of, named_tests

REFERENCE = sorted((ROOT / "docs/reference").glob("*.md"))
each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@each_page
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


@each_page
def test_every_named_test_exists(page: Path) -> None:
    missing = [
        f"{path}::{name}" for path, name in named_tests(page) if name not in functions_of(path)
    ]
    assert not missing


def test_guarantees_name_their_tests() -> None:
    assert len(named_tests(ROOT / "docs/guarantees.md")) > 40


def functions_of(path: str) -> set[str]:
    file = ROOT / path
    if not file.exists():
        return set()
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@each_page
def test_every_block_says_its_language(page: Path) -> None:
    assert [str(block) for block in blocks(page) if not block.language] == []


def test_every_page_is_reached_from_the_readme() -> None:
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            todo += [(page.parent / t.partition("#")[0]).resolve() for t in links(page)]
    assert [name_of(page) for page in PAGES if page not in seen] == []


# --- generated ----------------------------------------


@pytest.mark.parametrize("page", REFERENCE, ids=name_of)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    """If this fails, run `python -m docs.generate` and commit what it wrote."""
    text = page.read_text(encoding="utf-8")
    assert generate.renewed(text) == text


def test_every_part_is_used_and_every_subcommand_shown() -> None:
    from jobqueue.management.jobs_commands import SUBCOMMANDS

    text = "".join(page.read_text(encoding="utf-8") for page in REFERENCE)
    used = {found[2] for found in generate.PART.finditer(text)}
    commands = {"runworker", "runscheduler", "runreaper"} | {f"jobs {s.name}" for s in SUBCOMMANDS}
    assert used == set(generate.PARTS) | {f"command {name}" for name in commands}


def test_options_said_to_be_planned_are_those_nobody_reads() -> None:
    code = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "jobqueue").rglob("*.py")
        if path.name != "conf.py"
    )
    unread = {name for name in Options.__dataclass_fields__ if f".{name}" not in code}
    assert unread == generate.NOT_USED_YET


# --- events ----------------------------------------


def test_every_event_is_in_the_reference_and_no_other() -> None:
    text = (ROOT / "docs/reference/events.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    told = {name.strip(" `") for cell in rows for name in cell.split(",")}
    assert told == set(emitted())


def emitted() -> list[str]:
    """Return the names of all events that the code emits."""
    names = []
    for path in (ROOT / "jobqueue").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "emit":
                names += _names(ast.unparse(node.args[0]))
    return names


VARIABLE = {
    "name": ["bulk.started", "bulk.stopped", "bulk.resumed"],
    "what": ["bulk.failing", "bulk.failed"],
    "f'job.{failure.state}'": [
        f"job.{state}" for state in ("retrying", "scheduled", "dead", "cancelled")
    ],
    "change.event": [
        f"jobs.{done}"
        for done in (
            "requeued",
            "cancelled",
            "discarded",
            "rescheduled",
            "made_due_now",
            "reprioritized",
            "moved",
            "copied",
        )
    ],
}
"""What the names that are put together can become."""


def _names(source: str) -> list[str]:
    if source in VARIABLE:
        return VARIABLE[source]
    return [ast.literal_eval(source)]


# --- states ----------------------------------------


def test_every_state_is_explained() -> None:
    text = (ROOT / "docs/reference/states.md").read_text(encoding="utf-8")
    for state in State:
        assert f"| {state} | " in text
    assert text.count("--> [*]") == len(FINISHED)
