"""What an operator does on the page, and what it says of itself."""

from typing import Any

from tests.browser.looking import settled, status
from tests.browser.stage import Stage, wait_until

DELIVERY = "project.shop.tasks.book_delivery"
CUP = {"task": DELIVERY, "kwargs": {"sku": "cup", "quantity": 1}}
NO_ARTICLE = {"task": DELIVERY, "kwargs": {"sku": "saucer", "quantity": 1}}


def test_a_filter_with_a_mistake_is_told_so_in_its_place(page: Any, shop: Stage) -> None:
    page.goto(f"{shop.base}/jobqueue/jobs")
    settled(page)
    page.keyboard.press("/")
    page.keyboard.type("sate:dead")
    page.keyboard.press("Enter")
    page.wait_for_selector(".field-error")
    assert "sate" in page.locator(".field-error").inner_text()
    assert page.url.endswith("?q=sate:dead")


def test_a_dry_run_tells_what_the_operation_then_does(page: Any, shop: Stage) -> None:
    client = shop.client
    body = {**NO_ARTICLE, "tags": ["bulk"]}
    client.post("/jobs/batch/", {"jobs": [body, body, body]})
    dead = lambda: client.get("/jobs/", q="state:dead tag:bulk")["results"]  # noqa: E731
    wait_until(lambda: len(dead()) == 3, "three dead letters")
    page.goto(f"{shop.base}/jobqueue/jobs?q=state:dead+tag:bulk")
    settled(page)
    page.get_by_role("button", name="Discard …").first.click()
    page.wait_for_selector(".dry-run >> text=3 jobs")
    focused = page.evaluate("document.activeElement.innerText")
    assert focused == "Cancel", "a dialog that ends something starts on the way out"
    page.get_by_role("button", name="Discard 3 jobs").click()
    page.wait_for_selector(".bulk-progress >> text=finished")
    assert dead() == []


def test_a_bulk_operation_is_stopped_and_resumed(page: Any, shop: Stage) -> None:
    client = shop.client
    job = client.post("/jobs/", {**CUP, "tags": ["held"], "run_after": "PT1H"})["id"]
    with shop.holding(job):  # an operation comes back to rows that are locked: it is not done
        operation = client.post("/page/bulk/", {"verb": "cancel", "filter": "tag:held"})["id"]
        page.goto(f"{shop.base}/jobqueue/jobs?q=tag:held")
        shown = page.locator(".bulk-progress", has_text="held")
        shown.get_by_role("button", name="Stop").click()
        shown.get_by_role("button", name="Resume").wait_for()
        assert client.get(f"/page/bulk/{operation}/")["state"] == "stopped"
    shown.get_by_role("button", name="Resume").click()
    shown.wait_for(state="detached")
    assert client.get(f"/page/bulk/{operation}/")["state"] == "finished"
    assert client.get(f"/jobs/{job}/")["state"] == "cancelled"


def test_a_job_page_goes_on_beyond_the_first_page_of_its_attempts(page: Any, shop: Stage) -> None:
    client = shop.client
    job = client.post("/jobs/", {**NO_ARTICLE, "tags": ["often"]})["id"]
    ended = lambda: client.get(f"/jobs/{job}/")  # noqa: E731
    for attempts in (1, 2):
        wait_until(lambda n=attempts: ended()["attempts"] == n, f"attempt {attempts} has ended")
        if attempts < 2:
            client.post(f"/jobs/{job}/requeue/", {})
    # The server's pages, a line each: the page cannot tell, and need not have fifty attempts.
    page.route("**/attempts/*", lambda route: route.continue_(url=with_limit(route.request.url)))
    page.goto(f"{shop.base}/jobqueue/jobs/{job}?tab=attempts")
    page.wait_for_selector(".attempt")
    assert page.locator(".attempt h2").inner_text().startswith("Attempt 2")
    page.get_by_role("button", name="Show earlier attempts").click()
    page.wait_for_selector(".attempt >> text=Attempt 1")
    assert page.locator(".attempt").count() == 2
    assert page.get_by_role("button", name="Show earlier attempts").count() == 0


def with_limit(url: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}limit=1"


def test_a_row_is_patched_where_it_stands_and_new_jobs_are_only_counted(
    page: Any, shop: Stage
) -> None:
    client = shop.client
    waiting = {**CUP, "tags": ["patched"]}
    job = client.post("/jobs/", {**waiting, "run_after": "PT1H"})["id"]
    page.goto(f"{shop.base}/jobqueue/jobs?q=tag:patched+state:any")
    settled(page)
    wait_until(lambda: status(page) == "Live", "the page is live")
    client.post(f"/jobs/{job}/run-now/", {})
    page.wait_for_selector("tbody tr .badge-succeeded")
    client.post("/jobs/", waiting)
    page.wait_for_selector("button.news >> text=1 new job")
    assert page.locator("tbody tr").count() == 1
    page.locator("button.news").click()
    wait_until(lambda: page.locator("tbody tr").count() == 2, "the new job is shown")


def test_selecting_freezes_the_list_and_the_page_says_so(page: Any, shop: Stage) -> None:
    shop.client.post("/jobs/", {**NO_ARTICLE, "tags": ["frozen"]})
    page.goto(f"{shop.base}/jobqueue/jobs?q=tag:frozen+state:any")
    settled(page)
    page.keyboard.press("j")
    page.keyboard.press("x")
    wait_until(lambda: status(page) == "Paused: jobs are selected", "the page is frozen")
    page.keyboard.press("Escape")
    wait_until(lambda: status(page) == "Live", "the page goes on")


def test_nobody_is_offered_to_end_all_jobs_before_there_is_a_filter(page: Any, shop: Stage) -> None:
    job = shop.client.post("/jobs/", {**CUP, "run_after": "PT1H"})["id"]
    page.goto(f"{shop.base}/jobqueue/jobs")
    page.get_by_label(f"Select book_delivery {job}").wait_for()
    cancel = page.get_by_role("button", name="Cancel …")
    assert cancel.count() == 0
    page.get_by_role("button", name="Scheduled").click()
    cancel.wait_for()
    assert "All that the filter finds" in page.locator(".bulk").inner_text()


def test_a_queue_is_paused_with_a_reason_and_resumed(page: Any, shop: Stage) -> None:
    page.goto(f"{shop.base}/jobqueue/queues")
    settled(page)
    row = page.locator("tbody tr", has_text="mail")
    row.get_by_role("button", name="Pause …").click()
    page.get_by_label("Reason").fill("the provider is down")
    page.get_by_role("button", name="Pause", exact=True).last.click()
    row.locator("text=the provider is down").wait_for()
    row.get_by_role("button", name="Resume").click()
    row.locator(".badge-alive").wait_for()


def test_a_schedule_is_shown_its_ticks_before_it_is_made(page: Any, shop: Stage) -> None:
    page.goto(f"{shop.base}/jobqueue/schedules?edit=new")
    settled(page)
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("Expression", exact=True).fill("30 2 * * *")
    page.wait_for_selector(".preview >> text=02:30")
    assert page.locator(".preview li").count() == 5
    page.get_by_label("Name").fill("early delivery")
    page.get_by_label("sku").fill("cup")
    page.get_by_label("quantity").fill("2")
    page.get_by_role("button", name="Save").click()
    page.locator("tbody tr", has_text="early delivery").wait_for()


def test_the_form_says_what_is_wrong_with_an_argument(page: Any, shop: Stage) -> None:
    page.goto(f"{shop.base}/jobqueue/submit")
    settled(page)
    page.get_by_label("quantity").fill("many")
    page.get_by_role("button", name="Submit book_delivery").click()
    errors = page.locator(".field-error").all_inner_texts()
    assert errors == ["is needed", "must be a whole number"]


def test_a_server_that_is_away_is_called_offline_and_the_page_comes_back_by_itself(
    page: Any, shop: Stage
) -> None:
    heard: list[str] = []
    page.on(
        "websocket", lambda socket: socket.on("framereceived", lambda frame: heard.append(frame))
    )
    page.on("request", lambda request: heard.append(request.url))
    page.goto(f"{shop.base}/jobqueue/")
    wait_until(lambda: status(page) == "Live", "the page is live")
    page.context.set_offline(True)
    wait_until(lambda: status(page).startswith("Offline since"), "the page is offline")
    heard.clear()
    page.context.set_offline(False)
    wait_until(lambda: status(page) == "Live", "the page is live again")
    # What is read before it is told of a rollup may be older, and nobody would tell of it again.
    # Asking the page for something is also what lets its events in.
    again = lambda: status(page) == "Live" and is_read_after_it_is_told(heard)  # noqa: E731
    wait_until(again, "figures are read after the first event")


def is_read_after_it_is_told(heard: list[str]) -> bool:
    told = next((at for at, one in enumerate(heard) if "rolled_up_at" in one), None)
    return told is not None and any("/stats/" in one for one in heard[told:])


def test_p_pauses_and_goes_on(page: Any, shop: Stage) -> None:
    page.goto(f"{shop.base}/jobqueue/")
    wait_until(lambda: status(page) == "Live", "the page is live")
    page.keyboard.press("p")
    wait_until(lambda: status(page) == "Paused", "the page is paused")
    page.keyboard.press("p")
    wait_until(lambda: status(page) == "Live", "the page goes on")
