"""jobs drain: workers by what `jobs status` shows of them."""

import os

from jobqueue.models import Worker
from tests.storage.making import register


def draining() -> set:
    return set(Worker.objects.filter(draining=True).values_list("id", flat=True))


def test_a_worker_is_named_by_host_and_pid_or_by_its_identity(storage, jobs):
    first, second, third = (register(storage, pid=pid) for pid in (11, 12, 13))
    assert jobs("drain", "here:11").out.strip() == "1 told to drain"
    assert draining() == {first}
    assert jobs("drain", str(second), third.hex[:20]).out.strip() == "2 told to drain"
    assert draining() == {first, second, third}


def test_all_workers_of_a_host_are_drained(storage, jobs):
    here = {register(storage, pid=pid) for pid in (11, 12)}
    register(storage, host="there")
    assert jobs("drain", "--host", "here").out.strip() == "2 told to drain"
    assert draining() == here


def test_who_is_not_found_is_told_who_lives(storage, jobs):
    worker = register(storage)
    for words in (["there:1"], [worker.hex[:3]], [], ["--host", "there"]):
        ran = jobs("drain", *words)
        assert ran.code == 1
        assert f"here:{os.getpid()} ({worker})" in str(ran.error)
    assert draining() == set()


def test_without_any_worker_it_says_so(jobs):
    assert "None is alive." in str(jobs("drain", "here:1").error)
