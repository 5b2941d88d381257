"""Health check of a container: exit 0 if it is healthy, 1 with a line that says why not.

Usage: healthy.py file PATH SECONDS    the file was touched in the last SECONDS
       healthy.py url URL              the address answers with a status below 400

The image has no curl, and this needs nothing but Python.
"""

import sys
import time
import urllib.request
from pathlib import Path

TIMEOUT_SECONDS = 5


def main(kind: str, *arguments: str) -> str | None:
    """Return why it is not healthy, or None."""
    try:
        return {"file": stale_file, "url": failing_url}[kind](*arguments)
    except OSError as error:
        return f"unhealthy: {error}"


def stale_file(path: str, seconds: str) -> str | None:
    """Return a reason if the file is too old."""
    age = time.time() - Path(path).stat().st_mtime
    return f"unhealthy: {path} is {age:.0f} s old" if age > float(seconds) else None


def failing_url(url: str) -> str | None:
    """Raise OSError if the address does not answer, or with an error."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS):
        return None


if __name__ == "__main__":
    # A text makes it exit 1 and print; None exits 0.
    sys.exit(main(*sys.argv[1:]))
