"""Databases of tests/process: real processes commit to them, so no transaction undoes a test."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, connections
from psycopg import sql
from pytest_django import DjangoDbBlocker

from tests.settings import database


@contextmanager
def django_on(url: str, blocker: DjangoDbBlocker) -> Iterator[None]:
    """Make Django's default database in this process the one at `url`."""
    settings, wrapper = connections.settings["default"], connections["default"]
    wrapper.close()
    configured = connections.configure_settings({"default": database(url)})
    connections.settings["default"] = configured["default"]
    connections["default"] = connections.create_connection("default")
    try:
        with blocker.unblock():
            yield
            connections["default"].close()
    finally:
        connections.settings["default"], connections["default"] = settings, wrapper


@contextmanager
def new_database(server_url: str, name: str) -> Iterator[str]:
    """Make an empty database on the server at `server_url`, and remove it afterwards."""
    with psycopg.connect(server_url, autocommit=True) as session:
        session.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield f"{server_url.rpartition('/')[0]}/{name}"
        finally:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            session.execute(drop)


def migrate() -> None:
    """Make the tables of all apps in Django's default database."""
    call_command("migrate", run_syncdb=True, verbosity=0)


def empty() -> None:
    """Remove every row of every table of Django's default database."""
    tables = connection.introspection.django_table_names(only_existing=True)
    connection.ops.execute_sql_flush(connection.ops.sql_flush(no_style(), tables))
