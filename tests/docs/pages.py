"""The documentation as data: its files, their fenced blocks, links, headings and named tests."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = sorted([*(ROOT / name for name in _TOP), *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\(([^)\s]+)\)")
_TEST = re.compile(r"\b(tests/[\w/]+\.py)::(\w+)")
_FILE = re.compile(r"# ([\w/]+\.py)\n")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: where it is, its language, and its text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def file(self) -> str:
        """The file that a Python block says it belongs to, in its first line; or ""."""
        found = _FILE.match(self.text)
        return found[1] if found else ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(name_of(page), line, found[1], found[2])


def links(page: Path) -> Iterator[str]:
    """Yield the targets of the links of a page that lead within the tree."""
    for target in _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in target:
            yield target


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


def named_tests(page: Path) -> set[tuple[str, str]]:
    """Return the tests that a page names: path and function."""
    return set(_TEST.findall(page.read_text(encoding="utf-8")))
