"""An operator at three in the morning, with a browser: run by test_operator.py in a process apart.

Playwright has an event loop of its own, in which Django's ORM does not work; here nothing of Django
is imported. Prints a line a step, so that a failure says how far it came.
"""

import json
import re
import sys
import time

from project.pictures.camera import browser, signed_in

WAIT_SECONDS = 60.0


def say(text: str) -> None:
    print(text, flush=True)


def until(page, text: str) -> None:
    """Come back to a page until it says so."""
    end = time.monotonic() + WAIT_SECONDS
    while not re.search(text, page.inner_text("#content")):
        assert time.monotonic() < end, f"{text!r} never came: {page.inner_text('#content')[:800]}"
        time.sleep(0.5)
        page.reload()


def main(url: str, scripts: bool, dead: int) -> None:
    with browser() as started:
        page = signed_in(started, url, java_script_enabled=scripts)
        find_the_cause(page)
        pause_the_queue(page)
        read_the_traceback(page)
        requeue_over_ten_minutes(page, f"{dead:,}")
        resume_the_queue(page)


def find_the_cause(page) -> None:
    wrong = page.inner_text(".jq-overview")
    assert "send_receipt failed in the last 10 min" in wrong, wrong
    page.click(".jq-findings a:text-is('Errors') >> nth=0")
    first = page.inner_text(".jq-table tbody tr >> nth=0")
    assert "SMTPServerDisconnected" in first, first
    say("found: mails fail because the provider hangs up")


def pause_the_queue(page) -> None:
    page.goto(page.url.split("/admin/")[0] + "/admin/jobqueue/queue/")
    page.click(".jq-table >> text=mail")
    page.fill("input[name=reason]", "mail provider is down, ticket 4711")
    page.click("button:text-is('Pause')")
    text = page.inner_text("#content")
    for what in ("paused", "by demo", "ticket 4711"):
        assert what in text, text
    say("paused: the queue mail, with a reason")


def read_the_traceback(page) -> None:
    page.goto(page.url.split("/admin/")[0] + "/admin/jobqueue/errorgroup/")
    page.click("text=SMTPServerDisconnected >> nth=0")
    page.click("text=Newest job with its traceback")
    text = page.inner_text("#content")
    assert "Your own code, the innermost frame first" in text, text[:500]
    assert "project/shop/mail.py:31" in text
    say("read: the traceback, own frames first")


def requeue_over_ten_minutes(page, dead: str) -> None:
    page.click("text=This error over time")
    page.click("a:has-text('Requeue')")
    text = page.inner_text("#content")
    assert f"{dead} jobs" in text, text
    page.fill("input[name=spread]", "10")
    page.click("button.jq-go")
    assert "/bulkoperation/" in page.url
    until(page, rf"{dead} of {dead} jobs processed")
    text = page.inner_text("#content")
    assert re.search(rf"requeued\s+{dead}", text), text
    say("requeued: all dead letters of this error, spread over ten minutes, watched to the end")


def resume_the_queue(page) -> None:
    page.goto(page.url.split("/admin/")[0] + "/admin/jobqueue/queue/mail/change/")
    page.click("summary:text-is('Resume…')")
    page.click("button:text-is('Resume')")
    until(page, "failing")  # and no longer paused: the provider is still down
    page.goto(page.url.split("/admin/")[0] + "/admin/jobqueue/action/")
    text = page.inner_text("#result_list")
    for what in ("Pause", "Resume", "Bulk: Requeue"):
        assert what in text, text[:800]
    say("resumed: the queue; every action is on record")


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    main(**given)
