"""What an operator does on the page, and what it says of itself."""

from typing import Any

from tests.browser.looking import settled, status
from tests.browser.stage import Stage, wait_until

DELIVERY = "project.shop.tasks.book_delivery"
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
    client = shop.client()
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


def test_a_row_is_patched_where_it_stands_and_new_jobs_are_only_counted(
    page: Any, shop: Stage
) -> None:
    client = shop.client()
    waiting = {"task": DELIVERY, "kwargs": {"sku": "cup", "quantity": 1}, "tags": ["patched"]}
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
    shop.client().post("/jobs/", {**NO_ARTICLE, "tags": ["frozen"]})
    page.goto(f"{shop.base}/jobqueue/jobs?q=tag:frozen+state:any")
    settled(page)
    page.keyboard.press("j")
    page.keyboard.press("x")
    wait_until(lambda: status(page) == "Paused: jobs are selected", "the page is frozen")
    page.keyboard.press("Escape")
    wait_until(lambda: status(page) == "Live", "the page goes on")


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
    page.goto(f"{shop.base}/jobqueue/")
    wait_until(lambda: status(page) == "Live", "the page is live")
    page.context.set_offline(True)
    wait_until(lambda: status(page).startswith("Offline since"), "the page is offline")
    page.context.set_offline(False)
    wait_until(lambda: status(page) == "Live", "the page is live again")


def test_p_pauses_and_goes_on(page: Any, shop: Stage) -> None:
    page.goto(f"{shop.base}/jobqueue/")
    wait_until(lambda: status(page) == "Live", "the page is live")
    page.keyboard.press("p")
    wait_until(lambda: status(page) == "Paused", "the page is paused")
    page.keyboard.press("p")
    wait_until(lambda: status(page) == "Live", "the page goes on")
