"""What tests ask of a page."""

import re
from typing import Any


def status(page: Any) -> str:
    """Return what the status line says."""
    return str(page.locator(".status [role=status]").inner_text())


def tile(page: Any, name: str) -> int:
    """Return the first number of a tile of the overview."""
    named = page.locator(".tile-name", has_text=re.compile(rf"^{name}( ·|$)"))
    text = page.locator(".tile", has=named).locator(".tile-value").inner_text()
    found = re.search(r"[\d,]+", text)
    assert found, f"{name}: {text}"
    return int(found[0].replace(",", ""))


def settled(page: Any) -> None:
    """Wait until the page has what it asked for."""
    page.wait_for_selector("h1")
    page.wait_for_selector(".loading", state="detached")
