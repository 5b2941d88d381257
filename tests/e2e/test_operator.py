"""The admin in a browser: an incident from the overview to the last mail, without JavaScript."""

import json
import subprocess
import sys

import pytest

from project.pictures import camera
from project.pictures.site import IncidentSite
from tests.conftest import CHECKOUT

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(bool(camera.missing()), reason=camera.missing() or "a browser is there"),
]


@pytest.mark.postgres_only("one database is enough for a browser")
def test_an_operator_finds_why_mails_are_stuck_and_gets_them_going_again(
    disposable_postgres, tmp_path
):
    with IncidentSite(tmp_path, disposable_postgres.url) as site:
        worker = subprocess.Popen(
            [sys.executable, "manage.py", "runworker", "--queues", "default", "--threads", "1"],
            env=site.environment, cwd=CHECKOUT, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tests.e2e.story",
                 json.dumps({"url": site.url, "scripts": False, "dead": site.keys["dead"]})],
                env=site.environment, cwd=CHECKOUT, capture_output=True, text=True, check=False,
            )  # fmt: skip
        finally:
            worker.terminate()
            worker.wait(30)
    assert done.returncode == 0, done.stdout + done.stderr[-3_000:]
    assert done.stdout.splitlines()[-1].startswith("resumed")
