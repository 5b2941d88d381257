"""Steps: recorded once, under the guard."""

import pytest
from django.db import connection, transaction

from jobqueue.exceptions import LeaseLost
from jobqueue.models import Step
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.records import Claim
from tests.storage.making import claim, claimed, ending
from tests.storage.test_finish import NOT_THE_OWNER, Intrusion


@pytest.fixture
def held(storage: Storage) -> Claim:
    return claimed(storage)


def test_a_recorded_step_is_found(storage: Storage, held: Claim) -> None:
    assert storage.find_step(held.id, "charge") is None
    storage.record_step(held, "charge", '{"id":"ch_1","amount":1e22}')
    assert storage.find_step(held.id, "charge") == '{"id":"ch_1","amount":1e22}'
    assert storage.find_step(held.id, "mail") is None
    assert Step.objects.get().fence == held.fence


def test_the_first_record_stays(storage: Storage, held: Claim) -> None:
    storage.record_step(held, "charge", "1")
    storage.record_step(held, "charge", "2")
    assert storage.find_step(held.id, "charge") == "1"


def test_a_step_is_kept_over_attempts(storage: Storage, held: Claim) -> None:
    storage.record_step(held, "charge", "1")
    storage.end_many([ending(held, "ready", outcome="failed", charged=True)])
    (again,) = claim(storage, held.worker)
    assert storage.find_step(again.id, "charge") == "1"


@pytest.mark.parametrize("intrude", NOT_THE_OWNER)
def test_a_zombie_cannot_record_a_step(storage: Storage, held: Claim, intrude: Intrusion) -> None:
    zombie = intrude(storage, held)
    with pytest.raises(LeaseLost):
        storage.record_step(zombie, "charge", "1")
    assert storage.find_step(held.id, "charge") is None


def test_a_step_in_a_held_transaction_commits_with_it(held: Claim) -> None:
    mine = storage_for(connection)
    with transaction.atomic():
        mine.hold(held, 5.0)
        mine.record_step(held, "charge", "1")
        transaction.set_rollback(True)
    assert mine.find_step(held.id, "charge") is None
    with transaction.atomic():
        mine.hold(held, 5.0)
        mine.record_step(held, "charge", "1")
    assert mine.find_step(held.id, "charge") == "1"


@pytest.mark.postgres_only("on SQLite the job's own transaction holds the only write lock")
def test_a_step_does_not_wait_for_the_jobs_own_transaction(storage: Storage, held: Claim) -> None:
    with transaction.atomic():
        storage_for(connection).hold(held, 5.0)
        storage.record_step(held, "charge", "1")
        assert storage.find_step(held.id, "charge") == "1"
