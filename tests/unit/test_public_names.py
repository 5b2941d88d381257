"""What `jobqueue` itself offers, and when it can be imported."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import jobqueue

CHECKOUT = Path(__file__).parents[2]


def test_every_public_name_is_there():
    for name in jobqueue.__all__:
        assert getattr(jobqueue, name) is not None
        assert name in dir(jobqueue)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = jobqueue.no_such_name


def test_the_version_is_the_packages():
    package = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert jobqueue.__version__ == package["version"]


@pytest.mark.parametrize(
    "code",
    [
        "import jobqueue; jobqueue.Backoff(); jobqueue.Snooze(5)",
        "import tests.tasks.samples",
        "import jobqueue.testing",
        "import jobqueue.backend",
        "import jobqueue.engine.loading",
    ],
)
def test_it_can_be_imported_before_the_apps_are_ready(code):
    """A project's models may import its tasks."""
    subprocess.run(
        [sys.executable, "-c", f"{code}; from django.apps import apps; assert not apps.ready"],
        cwd=CHECKOUT,
        check=True,
        timeout=60,
    )
