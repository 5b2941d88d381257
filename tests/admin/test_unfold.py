"""Under django-unfold every page opens, and what is pressed on it works: stock hooks only."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.conftest import CHECKOUT

SCRIPT = """
import django
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.test.utils import setup_test_environment
setup_test_environment()
call_command("migrate", verbosity=0)
from jobqueue.models import Job
from tests.admin.making import everything, job, page
keys = everything()
client = Client()
client.force_login(User.objects.create_superuser("root"))
for model, key in keys.items():
    for address in (page(model), page(model, key)):
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.status_code)
        assert "unfold" in answer.text, address
        assert "jobqueue/admin.css" in answer.text, address
listed = client.get(page("job")).text
assert "All that match" in listed and "jq-search" in listed
assert "What is wrong now" in client.get("/admin/jobqueue/").text
assert client.get(page("job", "submit")).status_code == 200
chosen = {"action": "requeue_selected", "_selected_action": [str(keys["job"])], "index": "0"}
assert "No worker is alive" in client.post(page("job"), chosen).text
confirmed = client.post(page("job", "selected", "requeue"), chosen, follow=True)
assert "1 requeued" in confirmed.text
assert Job.objects.get(pk=keys["job"]).state == "ready"
print("fine")
"""


@pytest.mark.sqlite_only("one database is enough for another theme")
@pytest.mark.skipif(find_spec("unfold") is None, reason="django-unfold is not installed")
def test_under_unfold_every_page_opens_and_an_action_works(tmp_path):
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.admin.unfold_settings",
        "TEST_DATABASE_URL": f"sqlite:///{tmp_path}/unfold.sqlite3",
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONWARNINGS": "default",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("fine\n"), done.stderr[-3_000:]
