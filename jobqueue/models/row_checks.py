"""Check constraints of a hot table, which PostgreSQL holds as one function.

PostgreSQL keeps a check constraint as text and reads and plans that text anew in every statement
that writes a row: with ten of them this is half of what finishing one job costs the server. A
constraint that calls one function with the row has next to no text, and a session compiles the
function once. It asks for all conditions in one expression, and for each by itself only where that
does not hold. What is refused, and under which name, is the same; docs/adr/0012 has the figures.

On SQLite they are ordinary constraints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import CheckConstraint, Model, Q
from django.db.models.constraints import BaseConstraint
from django.db.models.sql.query import Query

_FUNCTION = """
CREATE FUNCTION {name}({table} {table}) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF {all}
    THEN
        RETURN true;
    END IF;
{each}
    RETURN true;
END $$
"""
_CHECK = """\
    IF NOT ({condition}) THEN
        RAISE check_violation USING TABLE = {table}, CONSTRAINT = {check}, MESSAGE = {message};
    END IF;"""


class RowChecks(BaseConstraint):
    """All check constraints of a table. checks: conditions of one row, by their names.

    As with a check constraint, a condition that is neither true nor false refuses nothing.
    """

    def __init__(self, *, name: str, checks: Mapping[str, Q]) -> None:
        super().__init__(name=name)
        self.checks = dict(checks)

    def deconstruct(self) -> tuple[str, Any, dict[str, Any]]:
        """Return what a migration writes."""
        path, args, kwargs = super().deconstruct()
        return path, args, {**kwargs, "checks": self.checks}

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RowChecks):
            return self.name == other.name and self.checks == other.checks
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, *self.checks))

    def constraint_sql(self, model: Any, schema_editor: Any) -> str:
        """Return what stands in CREATE TABLE; the function needs the table, and comes after it."""
        if _is_postgres(schema_editor):
            schema_editor.deferred_sql.append(self.create_sql(model, schema_editor))
            return ""
        return ", ".join(
            str(check.constraint_sql(model, schema_editor)) for check in self._constraints()
        )

    def create_sql(self, model: Any, schema_editor: Any) -> str:
        """Return what adds the constraint to a table that exists, on PostgreSQL."""
        quote = schema_editor.quote_name
        name, table = quote(self.name), quote(model._meta.db_table)
        conditions = {
            check: _condition_sql(condition, model, schema_editor)
            for check, condition in self.checks.items()
        }
        function = _FUNCTION.format(
            name=name,
            table=table,
            all="\n    AND ".join(f"({condition})" for condition in conditions.values()),
            each="\n".join(
                _check_sql(check, condition, model, schema_editor)
                for check, condition in conditions.items()
            ),
        )
        constraint = f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({name}({table}))"
        return f"{function.strip()};\n{constraint}"

    def remove_sql(self, model: Any, schema_editor: Any) -> str:
        """Return what removes the constraint, on PostgreSQL."""
        quote = schema_editor.quote_name
        name, table = quote(self.name), quote(model._meta.db_table)
        return f"ALTER TABLE {table} DROP CONSTRAINT {name};\nDROP FUNCTION {name}({table})"

    def validate(
        self,
        model: type[Model],
        instance: Model,
        exclude: Any = None,
        using: str = DEFAULT_DB_ALIAS,
    ) -> None:
        """Raise ValidationError for the first condition that `instance` does not meet."""
        for check in self._constraints():
            check.validate(model, instance, exclude=exclude, using=using)

    def _constraints(self) -> list[CheckConstraint]:
        return [CheckConstraint(name=name, condition=q) for name, q in self.checks.items()]


def _condition_sql(
    condition: Q, model: type[Model], schema_editor: BaseDatabaseSchemaEditor
) -> str:
    # With the columns' table before them: that is how the function calls the row.
    query = Query(model=model, alias_cols=True)
    where = query.build_where(condition)
    compiler = query.get_compiler(connection=schema_editor.connection)
    sql, params = where.as_sql(compiler, schema_editor.connection)
    return str(sql % tuple(schema_editor.quote_value(value) for value in params))


def _check_sql(
    check: str, condition: str, model: type[Model], schema_editor: BaseDatabaseSchemaEditor
) -> str:
    table, literal = model._meta.db_table, schema_editor.quote_value
    return _CHECK.format(
        condition=condition,
        table=literal(table),
        check=literal(check),
        message=literal(f'new row for relation "{table}" violates check constraint "{check}"'),
    )


def _is_postgres(schema_editor: BaseDatabaseSchemaEditor) -> bool:
    return schema_editor.connection.vendor == "postgresql"
