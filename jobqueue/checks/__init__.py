"""System checks: what is wrong with the settings, before a job finds out.

`check_backend` is called by the backend's own ``check()``. The rest is registered with Django by
importing this module (`jobqueue.apps`). A check never raises, and none but those tagged
``database`` (``manage.py check --database default``, ``migrate``) needs a database.

| id | says |
| --- | --- |
| jobqueue.E001 | an option is unknown or cannot be used |
| jobqueue.E002 | HEARTBEAT_SECONDS is more than a third of LEASE_SECONDS |
| jobqueue.E003 | a path in MIDDLEWARE, IMPORTS or STORAGE cannot be imported |
| jobqueue.E004 | DATABASE names no alias of DATABASES |
| jobqueue.E005 | the database is neither PostgreSQL nor SQLite, or cannot be loaded |
| jobqueue.E006 | AUTOCOMMIT of the database is off |
| jobqueue.E007 | QUEUES is malformed |
| jobqueue.E008 | HINTS names a way that cannot be gone |
| jobqueue.E010 | "channels" comes before "jobqueue" in INSTALLED_APPS |
| jobqueue.E011 | the JOBQUEUE setting is malformed, has unknown keys or names what is not there |
| jobqueue.E012 | SQLite: transactions do not begin IMMEDIATE, or the busy time-out is short |
| jobqueue.E013 | mail is sent by jobs, and EMAIL_BACKEND or EMAIL_QUEUE cannot be used |
| jobqueue.E014 | SQLite: Django reads its times in another zone than UTC |
| jobqueue.E020 | PostgreSQL is older than 15 |
| jobqueue.E021 | PostgreSQL acknowledges commits that are not on disk |
| jobqueue.E022 | SQLite does not use write-ahead logging |
| jobqueue.E023 | SQLite acknowledges commits that are not on disk |
| jobqueue.E030 | a schedule declared in code could make no job: its task, queue or arguments |
| jobqueue.E031 | a schedule is declared twice |
| jobqueue.E040 | an option of the HTTP API is unknown or cannot be used |
| jobqueue.E041 | the API is served, and an app that it needs is not installed |
| jobqueue.E042 | a class in AUTHENTICATION of the API cannot be used |
| jobqueue.E043 | BACKEND or THROTTLE_CACHE of the API names nothing |
| jobqueue.E050 | an option of the live page is unknown or cannot be used |
| jobqueue.E051 | the live page is served, and an app that it needs is not installed |
| jobqueue.E060 | an option of the admin is unknown, or names what is not there |
| jobqueue.W001 | SELF_EXIT is off |
| jobqueue.W002 | END_SESSIONS is off |
| jobqueue.W003 | there is a REDIS_URL, and the package redis is missing |
| jobqueue.W004 | aliases that share a database disagree about what they share |
| jobqueue.W005 | tasks share a limit and give it different numbers |
| jobqueue.W020 | PostgreSQL: full_page_writes is off |
| jobqueue.W021 | PostgreSQL ends sessions or statements before a job's own time-out |
| jobqueue.W022 | behind a pooler, and server-side cursors are not switched off |
| jobqueue.W023 | the database's settings could not be read |
| jobqueue.W030 | a schedule declared in code has no tick left |
| jobqueue.W040 | the API counts requests in a cache of one process (`check --deploy`) |
| jobqueue.W050 | sessions in cookies outlive a logout on the live page (`check --deploy`) |
| jobqueue.W051 | the live page is served, and has not been built (`check --deploy`) |
| jobqueue.W060 | a field that the admin looks up for each job has no index |

No message where there is no fault: a lease may be shorter than a job's time-out (long jobs live
by renewal, not by a long lease), and the project's isolation level is its own business (our own
statements run at READ COMMITTED).
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

import django
from django.core.checks import CheckMessage, Tags, register

from jobqueue.checks.admin import check_admin
from jobqueue.checks.api import check_api, check_api_deployment
from jobqueue.checks.backend import check_backend
from jobqueue.checks.database import check_database
from jobqueue.checks.limits import check_limits
from jobqueue.checks.live import check_live, check_live_deployment
from jobqueue.checks.project import check_apps, check_shared_databases, check_site_setting
from jobqueue.conf import jobqueue_aliases

__all__ = ["check_backend"]

if django.VERSION < (6, 0):
    # The backport's check, which asks every backend, is registered by its app only. It is the
    # same function if that is installed too, and runs once.
    import_module("django_tasks.checks")


@register
def check_project(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Return what is wrong with the settings that belong to no single alias."""
    return [
        *check_apps(),
        *check_site_setting(),
        *check_shared_databases(),
        *check_limits(),
        *check_api(),
        *check_live(),
        *check_admin(),
    ]


@register(deploy=True)
def check_deployment(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Return what is wrong only where the project is open to others."""
    return [*check_api_deployment(), *check_live_deployment()]


@register(Tags.database)
def check_databases(
    app_configs: Any = None, databases: Collection[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Return what is wrong with the databases of our aliases among `databases`."""
    return [
        message
        for alias in jobqueue_aliases()
        for message in check_database(alias, databases or ())
    ]
