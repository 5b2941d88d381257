"""History: it names what it is about, leads there, and says why."""

import re

import pytest

from jobqueue import control
from jobqueue.control import Actor
from jobqueue.ids import new_job_id
from jobqueue.models import Action, JobTag
from tests.admin.making import NOW, around, attempt, everything, job, page, worker

pytestmark = pytest.mark.django_db

KIM = Actor("kim", "shell")


def hrefs(text: str) -> str:
    """Return the addresses that a page leads to."""
    return "\n".join(re.findall(r'href="([^"]+)"', text)).replace("&amp;", "&")


# --- attempts -------------------------------------------------------------------------------------


def test_an_attempt_names_its_worker_and_leads_to_its_task_and_queue(admin):
    one = worker(name="mailer-1", host="web-3")
    made = attempt(job("dead", queue="mail"), worker=one.pk)
    text = admin.get(page("attempt", made.pk)).text
    for address in (page("attempt"), page("attempt", made.pk)):
        shown = admin.get(address).text
        assert "<bdi>mailer-1</bdi><br> <bdi>web-3</bdi></a>" in shown
        assert page("worker", one.pk) in hrefs(shown)
    assert "?q=task%3Atests.app.tasks.record+state%3Aany" in hrefs(text)
    assert "?q=queue%3Amail+state%3Aany" in hrefs(text)
    assert page("attempt") in hrefs(text)


def test_the_worker_of_an_attempt_whose_row_is_gone_is_told_by_its_identity(admin):
    made = attempt(job("dead"))
    text = admin.get(page("attempt", made.pk)).text
    assert str(made.worker) in text
    assert page("worker", made.worker) not in hrefs(text)


def test_the_error_of_an_attempt_is_told_once(admin):
    made = attempt(job("dead"), traceback="")
    text = admin.get(page("attempt", made.pk)).text
    assert text.count("no such order") == 1
    assert "<dt>Counts as a failure</dt><dd>yes</dd>" in text


# --- actions --------------------------------------------------------------------------------------


def test_an_action_says_why_and_leads_to_what_was_acted_on(admin):
    keys = everything()
    Action.objects.all().delete()
    control.resume("mail", KIM)
    control.pause("mail", KIM, "provider is down")
    control.set_limit("queue:mail", KIM, running=2, reason="gently")
    control.drain_worker(keys["worker"], KIM)
    control.disable_schedule("nightly", KIM, "stocktaking")
    operation = control.bulk_start("requeue", KIM, filter="state:dead")
    control.requeue([keys["job"]], KIM)
    text = admin.get(page("action")).text
    for why in ("provider is down", "gently", "stocktaking"):
        assert f"<bdi>{why}</bdi>" in text
    leads_to = hrefs(text)
    assert leads_to.count(page("queue", "mail")) == 2
    assert page("limit", "queue_3Amail") in leads_to
    assert page("worker", keys["worker"]) in leads_to
    assert f"{page('schedule')}?q=nightly" in leads_to
    assert page("bulkoperation", operation.pk) in leads_to
    assert page("job", keys["job"]) in leads_to


def test_actions_are_filtered_by_what_they_are_about(admin):
    for verb in ("pause", "requeue", "bulk requeue", "reschedule", "run_schedule", "prune"):
        Action.objects.create(at=NOW, actor="kim", surface="shell", verb=verb, target=f"<{verb}>")

    def shown(about: str) -> set[str]:
        text = admin.get(page("action"), about).text.replace("<wbr>", "")
        return set(re.findall(r"&lt;([a-z _]+)&gt;", text))

    assert shown({"about": "queues"}) == {"pause"}
    assert shown({"about": "bulk"}) == {"bulk requeue"}
    assert shown({"about": "schedules"}) == {"run_schedule"}
    assert shown({"about": "jobs"}) == {"requeue", "reschedule", "prune"}
    assert len(shown({})) == 6


# --- tags -----------------------------------------------------------------------------------------


def test_a_tag_leads_to_all_of_its_jobs_and_a_job_to_itself(admin):
    subject = job("succeeded")
    around(subject)
    JobTag.objects.create(job_id=new_job_id(), tag="of a job that is gone")
    text = admin.get(page("jobtag")).text
    assert "?q=tag%3Aorder%3A42+state%3Aany" in hrefs(text)
    assert page("job", subject.pk) in hrefs(text)
    assert "</span> succeeded</span>" in text
    assert "record</bdi>" in text
    assert "of a job that is gone" in text
