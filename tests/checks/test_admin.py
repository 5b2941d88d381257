"""The admin's options name what is there, or a check says what is not."""

import pytest

from jobqueue.checks.admin import check_admin


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, []),
        ({"EFFECTS": ["app.Effect.job_id"]}, []),
        ({"EFFECTS": ["app.Effect.label"]}, ["jobqueue.W060"]),
        ({"EFFECTS": ["app.Effect.nothing"]}, ["jobqueue.E060"]),
        ({"EFFECTS": ["app.Nothing.job_id"]}, ["jobqueue.E060"]),
        ({"EFFECTS": ["Effect"]}, ["jobqueue.E060"]),
        ({"EFFECTS": "app.Effect.job_id"}, ["jobqueue.E060"]),
        ({"EFECTS": []}, ["jobqueue.E060"]),
        ({"BACKEND": "nobody"}, ["jobqueue.E060"]),
        ([], ["jobqueue.E060"]),
    ],
    ids=repr,
)
def test_what_the_options_name_is_there(options, found, settings):
    settings.JOBQUEUE = {"ADMIN": options}
    assert [message.id for message in check_admin()] == found
