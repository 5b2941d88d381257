"""What tests ask of a page."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.browser.stage import wait_until


def status(page: Any) -> str:
    """Return what the status line says."""
    return str(page.locator(".status [role=status]").inner_text())


def tile(page: Any, name: str) -> int:
    """Return the first number of a tile of the overview, once it has one."""
    named = page.locator(".tile-name", has_text=re.compile(rf"^{name}( ·|$)"))
    value = page.locator(".tile", has=named).locator(".tile-value", has_text=re.compile(r"\d"))
    (first, *_) = re.findall(r"[\d,]+", value.inner_text())
    return int(first.replace(",", ""))


PARTS = ("committed", "running", "waiting", "dead")


def parts_in_words(page: Any) -> list[int]:
    """Return how many jobs the overview says are committed, running, waiting and dead."""
    said = page.locator(".totals .sum").first.inner_text()
    parts = [re.search(rf"([\d,]+) {part}\b", said) for part in PARTS]
    assert all(parts), said
    return [int(each[1].replace(",", "")) for each in parts if each]


def refusals(page: Any) -> Callable[[], list[str]]:
    """Listen to the page's socket; the function waits for all answers and returns the refusals."""
    asked: set[str] = set()
    answers: dict[str, dict[str, Any]] = {}

    def sent(text: str) -> None:
        frame = json.loads(text)
        if frame["type"] == "subscribe":
            asked.add(frame["id"])

    def received(text: str) -> None:
        frame = json.loads(text)
        if frame.get("id") is not None:
            answers.setdefault(frame["id"], frame)

    def opened(socket: Any) -> None:
        asked.clear()
        answers.clear()
        socket.on("framesent", sent)
        socket.on("framereceived", received)

    def all_of_them() -> list[str]:
        # Each look at the page lets events in.
        wait_until(lambda: status(page) and asked and asked <= set(answers), "answers to all")
        return [str(each["problem"]) for each in answers.values() if each["type"] == "error"]

    page.on("websocket", opened)
    return all_of_them


def settled(page: Any) -> None:
    """Wait until the page has what it asked for."""
    page.wait_for_selector("h1")
    page.wait_for_selector(".loading", state="detached")
