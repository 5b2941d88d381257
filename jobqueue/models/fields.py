"""A JSON document kept exactly as it was written.

PostgreSQL's ``jsonb`` rewrites numbers (1e22 comes back as an integer) and the order of keys, so
a job would see other arguments there than on SQLite. ``json`` keeps the text and still refuses
what is not JSON. The engine reads the text and decodes it itself, job by job, so that one bad
row (SQLite cannot refuse it) fails alone.
"""

import json
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class InvalidDocument(str):
    """The text of a stored document that is not JSON: shown as it is, never decoded."""


class JSONDocument(models.Field):  # type: ignore[type-arg]
    """A JSON value, stored as text: type ``json`` on PostgreSQL, ``text`` elsewhere."""

    description = "JSON document, kept as written"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "json" if connection.vendor == "postgresql" else "text"

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        """Read the text itself: psycopg would decode it, and a decoded string looks like text."""
        if compiler.connection.vendor == "postgresql":
            sql = f"{sql}::text"
        return sql, params

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        """Return the decoded value; `InvalidDocument` where the text is not JSON."""
        if value is None:
            return None
        try:
            return json.loads(value)
        except ValueError:
            return InvalidDocument(value)

    def get_prep_value(self, value: Any) -> Any:
        """Return the JSON text to store."""
        if value is None:
            return None
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
