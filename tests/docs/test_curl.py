"""The curl of the pages runs against a real site and answers what the pages show.

`…` in what a page shows stands for anything.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.site import Site, running_site
from tests.docs.pages import ROOT, blocks

PAGES = ("README.md", "docs/howto/http-api.md", "docs/howto/http-operating.md")
BY_OPERATORS = frozenset({"docs/howto/http-operating.md"})
"""Pages whose token is that of somebody who may do everything."""
NEXT = "--- next command ---"
GIVEN = ("API=", "TOKEN=")
"""What the pages set as an example, and the test for real."""

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The demo's site on a database of its own, so that the pages' keys are new in it."""
    with running_site(tmp_path_factory.mktemp("site")) as site:
        yield site


def commands(page: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a page from the first that sets API on, and what the page shows."""
    began = False
    for block in blocks(ROOT / page):
        began = began or "$ API=" in block.text
        if block.language == "console" and began:
            yield from _commands(block.text)


def _commands(text: str) -> Iterator[tuple[str, str]]:
    command, shown = "", ""
    for line in text.splitlines(keepends=True):
        if command and not _is_whole(command):
            command += line
        elif line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], ""
        else:
            shown += line
    yield command, shown


def _is_whole(command: str) -> bool:
    """Return whether a command ends where it does: no quote is open, no line continued."""
    try:
        shlex.split(command)
    except ValueError:
        return False
    return not command.endswith("\\\n")


def answers(site: Site, token: str, directory: Path, given: list[str]) -> list[str]:
    """Run commands in one shell; return what each wrote."""
    lines = [f"API={site.url}", f"TOKEN={token}"]
    for command in given:
        lines.append(":" if command.startswith(GIVEN) else command.rstrip("\n"))
        lines.append(f"printf '\\n{NEXT}\\n'")
    script = "\n".join(lines)
    done = subprocess.run(
        ["bash", "-c", script], cwd=directory, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("\r", "").split(NEXT)[:-1]


@pytest.mark.parametrize("page", PAGES)
def test_curl_answers_what_the_page_shows(site: Site, tmp_path: Path, page: str) -> None:
    told = list(commands(page))
    assert any("curl" in command for command, _ in told)
    token = site.admin_token if page in BY_OPERATORS else site.token
    got = answers(site, token, tmp_path, [command for command, _ in told])
    for (command, shown), answer in zip(told, got, strict=True):
        pattern = re.escape(shown.strip()).replace("…", ".*")
        assert re.fullmatch(pattern, answer.strip(), re.S) or not shown, (
            f"$ {command}{answer.strip()}\nand the page shows\n{shown}"
        )


def test_an_answer_that_differs_would_be_noticed() -> None:
    page = '$ api "$API/tasks/" --json \'{\n    "a": 1\n  }\'\n{"tasks":[…]}\n$ true\n'
    assert list(_commands(page)) == [
        ('api "$API/tasks/" --json \'{\n    "a": 1\n  }\'\n', '{"tasks":[…]}\n'),
        ("true\n", ""),
    ]
