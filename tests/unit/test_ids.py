"""Identifiers: unique, in the form that RFC 9562 gives a UUIDv7."""

import time

from jobqueue.ids import SESSION_PREFIX, lock_key, new_identity, new_job_id, session_name


def test_a_job_id_is_a_version_7_uuid_of_the_variant_of_the_rfc():
    for _ in range(1_000):
        job_id = new_job_id()
        assert job_id.version == 7
        assert job_id.variant == "specified in RFC 4122"


def test_a_job_id_begins_with_the_time_in_milliseconds():
    before = time.time_ns() // 1_000_000
    milliseconds = new_job_id().int >> 80
    assert before <= milliseconds <= time.time_ns() // 1_000_000


def test_job_ids_do_not_repeat_within_a_millisecond():
    assert len({new_job_id() for _ in range(20_000)}) == 20_000


def test_an_identity_is_random_and_names_its_sessions():
    identity = new_identity()
    assert identity.version == 4
    assert session_name(identity) == f"{SESSION_PREFIX}{identity.hex}"
    assert len(session_name(identity)) < 64  # PostgreSQL cuts application_name at 63 bytes


def test_a_lock_key_fits_a_signed_64_bit_integer_and_depends_on_the_identity():
    keys = {lock_key(new_identity()) for _ in range(1_000)}
    assert len(keys) == 1_000
    assert all(-(2**63) <= key < 2**63 for key in keys)
