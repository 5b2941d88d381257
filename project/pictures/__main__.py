"""python -m project.pictures [FOLDER [PART]]: take pictures of every page, and ask axe about each.

Each page is taken on a desktop, on a phone, and in the dark; PART chooses pages by their names.
What the documentation shows is renewed in docs/pictures, as much as fits on a screen. Exits 1 if
axe finds anything, 2 where there is no browser.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from project.pictures.camera import browser, missing, signed_in, violations
from project.pictures.site import ROOT, IncidentSite

DOCUMENTED = ("overview", "jobs-filtered", "job", "errors")
LOOKS = {
    "desktop": {"size": "desktop"},
    "phone": {"size": "phone"},
    "dark": {"size": "desktop", "color_scheme": "dark"},
}


DOCS = ROOT / "docs" / "pictures"


def pages(keys: dict[str, Any]) -> dict[str, str]:
    """Return the address of each page by the name of its picture."""
    at = "/admin/jobqueue"
    filtered = "state%3Adead+queue%3Amail"
    alike = f"state%3Adead+fingerprint%3A{keys['errorgroup']}"
    return {
        "overview": f"{at}/",
        "jobs": f"{at}/job/",
        "jobs-filtered": f"{at}/job/?q={filtered}",
        "jobs-refused": f"{at}/job/?q=sate%3Adead",
        "job": f"{at}/job/{keys['job']}/change/",
        "matching": f"{at}/job/matching/requeue/?filter={filtered}",
        "requeue-error": f"{at}/job/matching/requeue/?filter={alike}",
        "submit": f"{at}/job/submit/",
        "dead-letters": f"{at}/deadletter/",
        "errors": f"{at}/errorgroup/",
        "error": f"{at}/errorgroup/{keys['errorgroup']}/change/",
        "queues": f"{at}/queue/",
        "queue": f"{at}/queue/{keys['queue']}/change/",
        "workers": f"{at}/worker/",
        "worker": f"{at}/worker/{keys['worker']}/change/",
        "schedules": f"{at}/schedule/",
        "schedule": f"{at}/schedule/{keys['schedule']}/change/",
        "bulk-operations": f"{at}/bulkoperation/",
        "bulk-operation": f"{at}/bulkoperation/{keys['bulkoperation']}/change/",
        "limits": f"{at}/limit/",
        "limit": f"{at}/limit/queue_3Amail/change/",
        "actions": f"{at}/action/",
        "attempts": f"{at}/attempt/",
        "attempt": f"{at}/attempt/{keys['attempt']}/change/",
        "tags": f"{at}/jobtag/",
        "order": f"/admin/shop/order/{keys['order']}/change/",
    }


def parser() -> ArgumentParser:
    """Return what reads the command line."""
    reads = ArgumentParser("python -m project.pictures", description=__doc__.partition(": ")[2])
    default = ROOT / ".cache" / "pictures"
    reads.add_argument("folder", nargs="?", type=Path, default=default, help="where they go")
    reads.add_argument("part", nargs="?", default="", help="only pages whose name has it")
    return reads


def main(folder: Path, only: str = "") -> int:
    """Take the pictures; return the exit code."""
    why = missing()
    if why:
        print(f"no pictures: {why}")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    found: list[str] = []
    with tempfile.TemporaryDirectory() as place, IncidentSite(Path(place)) as site:
        with browser() as started:
            for look, options in LOOKS.items():
                page = signed_in(started, site.url, **options)
                for name, address in pages(site.keys).items():
                    if only not in name:
                        continue
                    found += take(page, site.url + address, folder / f"{name}-{look}.png")
                    if name in DOCUMENTED and look == "desktop":
                        page.screenshot(path=str(DOCS / f"{name}.png"))
    print("\n".join(found) or "axe found nothing")
    return int(bool(found))


def take(page: Any, address: str, path: Path) -> list[str]:
    """Take one picture; return what axe found on the page."""
    answer = page.goto(address)
    page.screenshot(path=str(path), full_page=True)
    wrong = [f"status {answer.status}"] if answer.status != 200 else []
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    wrong += ["wider than the screen"] * bool(wide)
    return [f"{path.stem}: {each}" for each in [*wrong, *violations(page)]]


if __name__ == "__main__":
    asked = parser().parse_args()
    sys.exit(main(asked.folder, asked.part))
