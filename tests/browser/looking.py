"""What tests ask of a page."""

import re
from typing import Any


def status(page: Any) -> str:
    """Return what the status line says."""
    return str(page.locator(".status [role=status]").inner_text())


def tile(page: Any, name: str) -> int:
    """Return the first number of a tile of the overview, once it has one."""
    named = page.locator(".tile-name", has_text=re.compile(rf"^{name}( ·|$)"))
    value = page.locator(".tile", has=named).locator(".tile-value", has_text=re.compile(r"\d"))
    (first, *_) = re.findall(r"[\d,]+", value.inner_text())
    return int(first.replace(",", ""))


def settled(page: Any) -> None:
    """Wait until the page has what it asked for."""
    page.wait_for_selector("h1")
    page.wait_for_selector(".loading", state="detached")
