"""A JSON document kept exactly as it was written.

PostgreSQL's ``jsonb`` rewrites numbers (1e22 comes back as an integer) and the order of keys, so
a job would see other arguments there than on SQLite. ``json`` keeps the text and still refuses
what is not JSON. The engine reads the text and decodes it itself, job by job, so that one bad
row (SQLite cannot refuse it) fails alone.
"""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, F, Func, IntegerField, TextField, Value, When
from django.db.models.functions import Cast, Coalesce
from django.db.models.lookups import Exact, In


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
        except (ValueError, RecursionError):  # the latter: somebody nested it by hand
            return InvalidDocument(value)

    def get_prep_value(self, value: Any) -> Any:
        """Return the JSON text to store."""
        if value is None:
            return None
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class DocumentText(Func):
    """The text of what lies at a path in a document: "" where nothing does, or null.

    A step that is a number means a place in a list, or a key that looks like one. Texts are as
    they are, the rest is as JSON writes it. A document that is not JSON has nothing anywhere.
    """

    function = "json_extract_path_text"
    output_field = TextField()

    def __init__(self, column: Any, *path: str, **extra: Any) -> None:
        source = F(column) if isinstance(column, str) else column
        super().__init__(source, *map(Value, path), **extra)
        self.path = path

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        """Compile for PostgreSQL, whose own function reads paths of both kinds."""
        found = _function(self.function, *self.source_expressions)
        return compiler.compile(Coalesce(found, _NOTHING))

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        """Compile for SQLite, which raises for a document that is not JSON."""
        column = self.source_expressions[0]
        is_document = Exact(_function("JSON_VALID", column, of=IntegerField()), 1)
        found = [_sqlite_text(column, Value(path)) for path in _sqlite_paths(self.path)]
        text = Coalesce(*found, _NOTHING)
        when = When(is_document, then=text)
        return compiler.compile(Case(when, default=_NOTHING, output_field=TextField()))


_NOTHING = Value("", output_field=TextField())


def _sqlite_text(column: Any, path: Any) -> Case:
    """Return the text at a path; SQLite's own would be 1 and 0 for true and false."""
    kind = _function("JSON_TYPE", column, path)
    value = Cast(_function("JSON_EXTRACT", column, path), TextField())
    is_flag = When(In(kind, ["true", "false"]), then=kind)
    return Case(is_flag, default=value, output_field=TextField())


def _function(name: str, *arguments: Any, of: Any = None) -> Func:
    return Func(*arguments, function=name, output_field=of or TextField())


def _sqlite_paths(path: tuple[str, ...]) -> Iterator[str]:
    """Yield `path` in SQLite's notation, once for each way to take its numbers."""
    ways = [(f"[{s}]", f'."{s}"') if s.isdecimal() and s.isascii() else (f'."{s}"',) for s in path]
    for steps in product(*ways):
        yield "$" + "".join(steps)
