"""Type hints as JSON Schema, as far as JSON has such types; the rest takes anything: `{}`."""

from __future__ import annotations

import base64
import datetime
import decimal
import enum
import types
import uuid
from collections import abc
from collections.abc import Callable, Mapping
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    TypeAliasType,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from django.utils.dateparse import parse_date, parse_datetime, parse_duration, parse_time

Schema = dict[str, Any]
Within = tuple[Any, ...]
"""The named types that are being described."""


class Format(NamedTuple):
    """How a type of Python travels as text: what a sender is told, and who can read it."""

    description: str
    read: Callable[[str], Any]

    def reads(self, text: str) -> bool:
        """Return whether `text` is one."""
        try:
            return self.read(text) is not None
        except (ValueError, ArithmeticError):
            return False


FORMATS: Mapping[str, Format] = {
    "date-time": Format("a time such as 2030-01-31T08:00:00Z", parse_datetime),
    "date": Format("a date such as 2030-01-31", parse_date),
    "time": Format("a time of day such as 08:00:00", parse_time),
    "duration": Format("a duration such as P1DT2H", parse_duration),
    "uuid": Format("a UUID", uuid.UUID),
    "decimal": Format('a decimal number such as "12.50"', decimal.Decimal),
    "byte": Format("base64", lambda text: base64.b64decode(text, validate=True)),
}

_PLAIN: Mapping[Any, Schema] = {
    type(None): {"type": "null"},
    None: {"type": "null"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    decimal.Decimal: {"type": "string", "format": "decimal"},
    bytes: {"type": "string"},
}
_LISTS = (list, abc.Sequence, abc.Iterable, abc.Collection, abc.MutableSequence)
_OBJECTS = (dict, abc.Mapping, abc.MutableMapping)


def hints_of(function: Any) -> dict[str, Any]:
    """Return the evaluated hints of a function; one that cannot be evaluated here is left out.

    (Names under TYPE_CHECKING exist for type checkers only.)
    """
    try:
        return get_type_hints(function)
    except Exception:
        pass
    try:
        written = dict(function.__annotations__)
    except Exception:
        return {}
    found: dict[str, Any] = {}
    for name, hint in written.items():
        alone = types.SimpleNamespace(__annotations__={name: hint})
        try:
            found |= get_type_hints(alone, function.__globals__)
        except Exception:
            continue
    return found


def schema_of_hint(hint: Any) -> Schema:
    """Return the schema of what JSON has for `hint`; `{}` where that is anything."""
    try:
        return _schema_of(hint, ())
    except (NameError, TypeError):
        return {}  # an alias of what is not there


def _schema_of(hint: Any, within: Within) -> Schema:
    if hint in within:
        return {}  # defined by itself: its innermost part takes anything
    if isinstance(hint, abc.Hashable) and hint in _PLAIN:
        return dict(_PLAIN[hint])
    if isinstance(hint, NewType):
        return _schema_of(hint.__supertype__, within)
    if isinstance(hint, TypeAliasType):
        return _schema_of(hint.__value__, (*within, hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _schema_of_values([member.value for member in hint])
    if is_typeddict(hint):
        return _schema_of_typed_dict(hint, (*within, hint))
    return _schema_of_generic(get_origin(hint), get_args(hint), within)


def _schema_of_generic(origin: Any, arguments: tuple[Any, ...], within: Within) -> Schema:
    if origin is Annotated:
        return _schema_of(arguments[0], within)
    if origin is Literal:
        return _schema_of_values(arguments)
    if not arguments:
        # List, Dict or Tuple alone; without an origin, what JSON has nothing for.
        return {} if origin is None else dict(_PLAIN.get(origin, {}))
    if origin in (Union, types.UnionType):
        return _schema_of_union([_schema_of(each, within) for each in arguments])
    if origin is tuple:
        return _schema_of_tuple(arguments, within)
    if origin in _LISTS:
        return _without_nothing({"type": "array", "items": _schema_of(arguments[0], within)})
    if origin in _OBJECTS:
        values = _schema_of(arguments[1], within)
        return _without_nothing({"type": "object", "additionalProperties": values})
    return {}


def _schema_of_values(values: Any) -> Schema:
    plain = [value.value if isinstance(value, enum.Enum) else value for value in values]
    if all(value is None or isinstance(value, str | int | float) for value in plain):
        return {"enum": plain}
    return {}


def _schema_of_union(choices: list[Schema]) -> Schema:
    """Return one of `choices`; of plain types as a list of types."""
    if {} in choices:
        return {}
    if all(choice.keys() == {"type"} and isinstance(choice["type"], str) for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}


def _schema_of_tuple(arguments: tuple[Any, ...], within: Within) -> Schema:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return _without_nothing({"type": "array", "items": _schema_of(arguments[0], within)})
    items = [_schema_of(each, within) for each in arguments if each != ()]
    return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}


def _schema_of_typed_dict(hint: Any, within: Within) -> Schema:
    hints = hints_of(hint)
    return {
        "type": "object",
        "properties": {name: _schema_of(each, within) for name, each in hints.items()},
        "required": sorted(hint.__required_keys__),
        "additionalProperties": False,
    }


def _without_nothing(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if value != {}}
