"""Check that the tree says nothing about the machine it was written on.

Every file that git knows, or would add, is read. Reported are

- addresses of hosts that `allowed-hosts.txt` does not list (package indexes, mirrors, downloads);
- absolute paths into somebody's home or work folder;
- lines of `requirements/*.txt` that are not a plain pin, and recorded download addresses in
  `package-lock.json`.

Usage: python .ci/check_tree.py
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = Path(__file__).with_name("allowed-hosts.txt")

HOST = re.compile(
    r"\b[a-z][a-z0-9+]*://(?:[^\s/@\"'`<>]*@)?([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)", re.I
)
ADDRESS = re.compile(r"^\d+(\.\d+){3}$")
HOME = re.compile(r"(?<![\w.~$}/-])/(?:root|work|home|Users)/\w")
PIN = re.compile(r"^[a-z0-9._-]+(\[[a-z,]+\])?==[^\s]+( ; .+)?$")


def main() -> int:
    """Print what is wrong, return 1 if anything is."""
    allowed = read_allowed()
    problems = [
        f"{path}:{number}: {problem}"
        for path in files()
        for number, line in lines(path)
        for problem in check(path, line, allowed)
    ]
    print("\n".join(problems) or "the tree names no machine")
    return 1 if problems else 0


def read_allowed() -> set[str]:
    """Return the hosts listed beside this script."""
    listed = (line.strip() for line in ALLOWED.read_text().splitlines())
    return {line for line in listed if line and not line.startswith("#")}


def files() -> list[Path]:
    """Return every file that is committed or would be by `git add`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [Path(name) for name in listed.split("\0") if name]


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a text file; nothing for others and for links."""
    full = ROOT / path
    if full.is_symlink() or not full.is_file():
        return
    try:
        text = full.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    yield from enumerate(text.splitlines(), start=1)


def check(path: Path, line: str, allowed: set[str]) -> Iterator[str]:
    """Yield what is wrong with one line."""
    for host in HOST.findall(line):
        if not is_allowed(host.lower(), allowed):
            yield f"names the host {host}"
    if HOME.search(line):
        yield "holds a path of one machine"
    if path.parent.name == "requirements" and path.suffix == ".txt" and not PIN.match(line):
        yield "is not a plain pin"
    if path.name == "package-lock.json" and '"resolved":' in line:
        yield "records a download address"


def is_allowed(host: str, allowed: set[str]) -> bool:
    """Return whether an address may name this host."""
    if "." not in host or host.split(".")[-2] == "example" or host.endswith(".example"):
        return True
    if ADDRESS.match(host):
        return host.startswith("127.") or host == "0.0.0.0"
    return any(host == name or host.endswith("." + name) for name in allowed)


if __name__ == "__main__":
    sys.exit(main())
