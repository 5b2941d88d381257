"""What viewers are told: what differs from what they know, and nothing of what is not theirs."""

from collections.abc import Callable
from typing import Any

import pytest

from jobqueue.live.feed import _feeds
from jobqueue.live.protocol import Resync
from jobqueue.models import Job, Progress, Queue, Worker
from jobqueue.permissions import owner_name
from jobqueue.storage import Storage
from tests.live.conftest import Person
from tests.storage.making import claim, claimed, insert, register

STRANGER = "01890a5d-ac96-774b-bcce-b302099a8057"


def versions(*ids: Any) -> dict[str, int]:
    rows = Job.objects.filter(id__in=ids).values_list("id", "version")
    return {str(id): version for id, version in rows}


def test_stats_are_told_as_a_whole_and_then_by_what_differs(
    watcher: Person, storage: Storage
) -> None:
    socket = watcher.enter()
    socket.subscribe("s", "stats")
    first = socket.event("s")
    assert first["counts"]["ready"] == {"value": 0, "relation": "eq"}
    assert first["oldest_ready_at"] is None
    assert first["workers"] == {"alive": 0, "draining": 0, "expired": 0}
    insert(storage, 3)
    second = socket.event("s")
    assert second["counts"]["ready"] == {"value": 3, "relation": "eq"}
    assert second.keys() == {"counts", "oldest_ready_at", "as_of"}


def test_queues_and_workers_are_told_one_by_one(watcher: Person, storage: Storage) -> None:
    socket = watcher.enter()
    socket.subscribe("q", "queues")
    socket.subscribe("w", "workers")
    assert {queue["name"] for queue in socket.event("q")} >= {"default", "mail"}
    assert socket.event("w") == []
    held = claimed(storage)
    worker = {"id": str(held.worker), "condition": "alive", "running": 1}
    assert socket.event("w") == [worker]
    Queue.objects.create(name="mail", paused=True, paused_by="kim", paused_reason="storm")
    (queue,) = [q for q in socket.event("q") if q["name"] == "mail"]
    assert (queue["paused"], queue["paused_by"], queue["paused_reason"]) == (True, "kim", "storm")
    storage.mark_dead(held.worker, "test")
    assert socket.event("w") == [worker | {"condition": "dead"}]
    Worker.objects.all().delete()
    assert socket.event("w") == [{"id": str(held.worker), "gone": True}]


def test_watched_jobs_are_told_when_their_version_grows(watcher: Person, storage: Storage) -> None:
    first, second = sorted(insert(storage, 2))
    known = versions(first, second)
    socket = watcher.enter()
    socket.subscribe("j", "jobs", watch=known)
    assert socket.event("j") == []
    claim(storage, register(storage), limit=1)
    (change,) = socket.event("j")
    assert (change["state"], change["version"]) == ("running", known[change["id"]] + 1)
    Job.objects.filter(state="ready").delete()
    (gone,) = known.keys() - {change["id"]}
    assert socket.event("j") == [{"id": gone, "gone": True}]


def test_nothing_is_missed_between_the_answer_of_the_api_and_the_subscription(
    watcher: Person, storage: Storage
) -> None:
    (job,) = insert(storage)
    before = versions(job)
    claim(storage, register(storage))
    socket = watcher.enter()
    socket.subscribe("j", "jobs", watch=before)
    assert socket.event("j") == [{"id": str(job), "state": "running", "version": 2}]


def test_jobs_that_belong_on_the_page_are_new(watcher: Person, storage: Storage) -> None:
    older, shown, waiting = sorted(insert(storage, 3))
    socket = watcher.enter()
    socket.subscribe("j", "jobs", filter="state:ready", watch=versions(shown, waiting), size=2)
    assert socket.event("j") == []
    Job.objects.filter(id=waiting).update(priority=1, version=2)  # one of the rows leaves a gap
    assert [change["id"] for change in socket.event("j")] == [str(waiting)]
    (entered,) = insert(storage)
    insert(storage, delay=60.0)
    assert socket.event("j") == [{"id": str(entered), "state": "ready", "version": 1, "new": True}]
    assert str(older) not in str(socket.frames)


def test_a_job_is_told_with_what_it_says_of_itself(watcher: Person, storage: Storage) -> None:
    held = claimed(storage)
    socket = watcher.enter()
    socket.subscribe("one", "job", job=str(held.id))
    (job,) = socket.event("one")
    assert (job["id"], job["state"], job["progress"]) == (str(held.id), "running", None)
    Progress.objects.create(
        job_id=held.id, fence=held.fence, done=3, total=10, message="secret", reported_at=NOW
    )
    (job,) = socket.event("one")
    assert job["progress"] == {"done": 3.0, "total": 10.0}
    Job.objects.filter(id=held.id).delete()
    assert socket.event("one") == [{"id": str(held.id), "gone": True}]


NOW = "2026-01-01T00:00:00Z"


def test_a_job_of_somebody_else_is_as_if_it_were_not_there(
    make_person: Callable[..., Person], storage: Storage
) -> None:
    kim = make_person("kim")
    theirs, own = insert(storage, 2)
    Job.objects.filter(id=own).update(created_by=owner_name(kim.user))
    Job.objects.filter(id=theirs).update(created_by="kim")  # the name alone proves nothing
    socket = kim.enter()
    answers = []
    for job in (str(theirs), STRANGER):
        socket.subscribe("one", "job", job=job)
        answers.append(socket.until("error", "one")["problem"])
    assert answers[0] == answers[1]
    socket.subscribe("one", "job", job=str(own))
    assert socket.event("one")[0]["id"] == str(own)
    socket.subscribe("j", "jobs", watch=dict.fromkeys([str(theirs), STRANGER, str(own)], 0), size=9)
    told = {change["id"]: change for change in socket.event("j")}
    assert told[str(own)]["state"] == "ready"
    assert told[str(theirs)] == {"id": str(theirs), "gone": True}
    assert told[STRANGER] == {"id": STRANGER, "gone": True}
    insert(storage, 2)
    Job.objects.filter(id=own).update(version=7)
    assert [change["id"] for change in socket.event("j")] == [str(own)]


def test_what_is_about_everybody_needs_the_permission(make_person: Callable[..., Person]) -> None:
    socket = make_person("kim").enter()
    for topic in ("stats", "queues", "workers"):
        socket.subscribe("x", topic)
        assert socket.refusal() == "permission-denied"


def test_a_filter_tells_nobody_what_is_in_a_payload(
    watcher: Person, make_person: Callable[..., Person]
) -> None:
    socket = watcher.enter()
    for text in ("args.user_id:42", 'message:"no such order"', "order", "-order"):
        socket.subscribe("j", "jobs", filter=text, size=10)
        assert socket.refusal() == "permission-denied"
    auditor = make_person("auditor", "view_job", "view_job_payload").enter()
    auditor.subscribe("j", "jobs", filter="args.password:hunter2", size=10)
    assert auditor.refusal() == "invalid-filter"
    auditor.subscribe("j", "jobs", filter="args.user_id:42", size=10)
    assert auditor.event("j") == []


def test_more_changes_than_an_event_holds_are_a_resync(watcher: Person, storage: Storage) -> None:
    socket = watcher.enter()
    socket.subscribe("q", "queues")
    socket.event("q")
    Queue.objects.bulk_create(Queue(name=f"lane-{n}") for n in range(201))
    frame = socket.until("resync", "q")
    assert (frame["seq"], frame["reason"]) == (2, Resync.MANY_CHANGES)
    Queue.objects.filter(name="lane-7").update(paused=True)
    assert [queue["name"] for queue in socket.event("q")] == ["lane-7"]


def test_the_same_id_replaces_and_unsubscribe_ends(watcher: Person, storage: Storage) -> None:
    socket = watcher.enter()
    socket.subscribe("x", "stats")
    socket.event("x")
    socket.subscribe("x", "queues")
    assert isinstance(socket.event("x"), list)
    socket.send({"type": "unsubscribe", "id": "x"})
    socket.send({"type": "unsubscribe", "id": "never there"})
    insert(storage)
    socket.subscribe("y", "stats")
    socket.event("y")
    assert all(f["id"] != "x" for f in socket.frames[-1:])


@pytest.mark.parametrize("size", [None, 20])
def test_a_filter_that_cannot_be_read_says_where(watcher: Person, size: int | None) -> None:
    socket = watcher.enter()
    socket.subscribe("j", "jobs", filter="state:daed", size=size)
    problem = socket.until("error", "j")["problem"]
    assert problem["code"] == "invalid-filter"
    assert "dead" in problem["detail"]


def test_after_a_resync_stats_are_told_as_a_whole(watcher: Person, storage: Storage) -> None:
    socket = watcher.enter()
    socket.subscribe("s", "stats")
    members = socket.event("s").keys()
    (feed,) = [feed for feeds in _feeds.values() for feed in feeds.values()]
    feed.interruptions += 1
    insert(storage)
    assert socket.until("resync", "s")["reason"] == Resync.INTERRUPTED
    assert socket.event("s").keys() == members
