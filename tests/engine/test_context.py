"""The context: what a task may know about its own run."""

import logging
from datetime import timedelta

from tests.engine.bench import Bench, Ran
from tests.engine.tasks import async_job, atomic_job, plain_job


def asked(bench: Bench, question, task=plain_job):
    """Return what a job is told."""
    answers = []
    bench.run(lambda context: answers.append(question(context)), task)
    return answers[0]


def test_it_knows_its_job(bench: Bench):
    ran = bench.run(
        lambda c: [str(c.job_id), c.idempotency_key, c.fence, c.attempt, c.step_key("charge")]
    )
    key = str(ran.id)
    assert ran.job.result == [key, key, 1, 1, f"{key}:charge"]


def test_its_key_is_the_same_over_all_attempts_and_its_fence_is_not(bench: Bench):
    seen = []

    def body(context):
        seen.append((context.idempotency_key, context.fence, context.attempt))
        if context.attempt == 1:
            raise ValueError

    ran = bench.run(body)
    bench.again(ran)
    assert seen == [(str(ran.id), 1, 1), (str(ran.id), 2, 2)]


def test_its_deadline_is_on_the_databases_clock(bench: Bench):
    claim = bench.claim_one(lambda context: context.deadline.isoformat(), plain_job)
    bench.flush(bench.execute(claim, plain_job))
    assert (
        Ran(claim.id).job.result
        == (claim.claimed_at + timedelta(seconds=claim.timeout)).isoformat()
    )


def test_it_reads_djangos_result_of_the_job_when_asked_and_once(bench: Bench):
    def question(context):
        return context.task_result, context.task_result

    first, second = asked(bench, question, atomic_job)
    assert first is second
    assert (first.status.value, first.task) == ("RUNNING", atomic_job)


def test_a_run_is_cancelled_once_its_worker_has_lost_its_lease(bench: Bench):
    seen = []

    def body(context):
        seen.append(context.is_cancelled)
        bench.environment.is_alive = lambda: False
        seen.append(context.is_cancelled)

    bench.run(body, plain_job)
    assert seen == [False, True]


def test_a_run_is_cancelled_once_its_job_was_taken_away(bench: Bench):
    seen = []

    def body(context):
        seen.append(context.is_cancelled)
        context._run.abandoned = True  # as the beat does
        seen.append(context.is_cancelled)

    bench.run(body, plain_job)
    assert seen == [False, True]


def test_what_it_logs_bears_the_jobs_id(bench: Bench, caplog):
    with caplog.at_level(logging.INFO, logger="jobqueue.job"):
        ran = bench.run(lambda context: context.log.info("charged %s", "ch_1"))
    (record,) = [r for r in caplog.records if r.name == "jobqueue.job"]
    assert (record.getMessage(), record.job_id) == ("charged ch_1", str(ran.id))


def test_it_names_the_run_where_it_is_printed(bench: Bench):
    text = asked(bench, repr)
    assert plain_job.module_path in text
    assert "fence 1" in text


def test_an_async_job_has_the_same(bench: Bench):
    async def body(context):
        return [context.idempotency_key, context.fence, context.attempt, context.is_cancelled]

    ran = bench.run(body, async_job)
    assert ran.job.result == [str(ran.id), 1, 1, False]
