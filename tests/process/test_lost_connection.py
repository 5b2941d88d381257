"""A connection lost around a statement whose fate then is unknown: the attempt row is the verdict.

One worker meets all of these in turn, through a proxy that loses its connections.
"""

from collections.abc import Iterator

import pytest

from tests.process.harness import Program, Site, outcomes
from tests.process.proxy import How, Proxy
from tests.process.tasks import nothing, wait_and_commit, write

pytestmark = pytest.mark.postgres_only("SQLite has no connection to lose")

COMMIT = b"COMMIT"
FINISH = b"jobqueue_lease_lost"
BATCHED_FINISH = b"ended_ago"
CLAIM = b"SET state = 'running', fence = j.fence + 1"
CLAIMED = b"tests.process.tasks.nothing"
"""Part of the answer to a claim that found jobs: a worker also claims when there are none."""


@pytest.fixture(scope="module")
def proxy(process_url: str) -> Iterator[Proxy]:
    with Proxy(process_url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def worker(shared_site: Site, proxy: Proxy) -> Program:
    """A worker whose sessions all go through the proxy."""
    program = shared_site.runworker("--threads", "20", url=proxy.url(shared_site.url))
    program.workers()
    return program


@pytest.fixture
def site(shared_site: Site, worker: Program) -> Site:
    shared_site.renew()
    return shared_site


def test_commit_that_never_arrived_runs_the_job_again_uncharged(site, proxy):
    cut = proxy.cut(COMMIT, How.BEFORE, after=FINISH)
    job = write.enqueue()
    site.wait_until_done()
    assert cut.happens()
    assert outcomes(job.id) == ["succeeded"]
    assert len(site.folder.notes("start")) == 2
    site.assert_exactly_once()


def test_commit_whose_answer_was_lost_is_found_and_not_run_again(site, proxy):
    cut = proxy.cut(COMMIT, How.AFTER, after=FINISH)
    job = write.enqueue()
    site.wait_until_done()
    assert cut.happens()
    assert outcomes(job.id) == ["succeeded"]
    assert len(site.folder.notes("start")) == 1
    site.assert_exactly_once()


def test_commit_that_arrives_after_the_job_ran_again_commits_nothing(site, proxy):
    cut = proxy.cut(COMMIT, How.HELD, after=FINISH)
    job = write.enqueue()
    site.wait_until_done()
    assert cut.happens()
    proxy.release(cut)
    assert outcomes(job.id) == ["succeeded"]
    assert len(site.folder.notes("start")) == 2
    site.assert_exactly_once()


@pytest.mark.parametrize(
    ("how", "ends"), [(How.BEFORE, ["failed", "succeeded"]), (How.AFTER, ["succeeded"])]
)
def test_lost_commit_of_a_block_is_one_effect(site, proxy, how, ends):
    """Code outside a transaction cannot be run again for free: the attempt has failed."""
    cut = proxy.cut(COMMIT, how, after=FINISH)
    site.folder.open_gate("gate")
    job = wait_and_commit.enqueue("gate")
    site.wait_until_done()
    assert cut.happens()
    assert outcomes(job.id) == ends
    site.assert_exactly_once()


@pytest.mark.parametrize("how", [How.BEFORE, How.AFTER])
def test_lost_finish_of_a_batch_is_sent_again(site, proxy, how):
    cut = proxy.cut(BATCHED_FINISH, how)
    jobs = [nothing.enqueue() for _ in range(10)]
    site.wait_until_done()
    assert cut.happens()
    assert all(outcomes(job.id) == ["succeeded"] for job in jobs)
    assert len(site.folder.notes("start")) == 10


@pytest.mark.parametrize("how", [How.BEFORE, How.AFTER])
def test_lost_claim_is_reconciled_by_the_living_worker(site, proxy, worker, how):
    released = len(worker.events("claims.released"))
    cut = proxy.cut(CLAIM, how, answer=CLAIMED)
    jobs = nothing.enqueue_many([nothing.bind() for _ in range(20)])
    site.wait_until_done()
    assert cut.happens()
    assert all(outcomes(job.id) == ["succeeded"] for job in jobs)
    assert len(site.folder.notes("start")) == 20
    assert len(worker.events("claims.released")) == released + (how is How.AFTER)


def test_worker_survived_all_of_it(site, worker):
    assert len(worker.events("process.started")) == 1
    assert worker.stop() == 0
