"""What a task's function takes, as JSON Schema; and whether given arguments fit, place by place.

    schema_of(task)              # {"args": {...}, "kwargs": {...}}: JSON Schema 2020-12
    misfits(task, args, kwargs)  # [Flaw("/kwargs/order_id", "must be an integer, not text")]

An argument is given in `args`, by its place, or in `kwargs`, by its name; `required` of `kwargs`
names those without a default, which must come in one of the two.

Type hints count as far as JSON has them: int, float, str, bool, None, list, tuple, dict, Literal,
Optional and unions, enums (by value), TypedDict, and what is sent as text: datetime, date, time,
timedelta, UUID, Decimal, bytes. What is checked is what the schema says, but for one thing: 1.0 is
no integer here, as the job would be given a float. Any other hint, and one that cannot be
evaluated here, takes anything: the function itself is the judge. A job is given what was sent, so
a `datetime` arrives as text.

Pure, and read once a function. The limits of JSON, depth and size are `jobqueue.payload`'s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter
from typing import Any

from jobqueue.engine.arguments import signature_of
from jobqueue.engine.type_hints import FORMATS, hints_of, schema_of_hint
from jobqueue.exceptions import Flaw, InvalidArgument, UnsupportedType
from jobqueue.payload import encode_value
from jobqueue.tasks import JobTask

Schema = dict[str, Any]

MAX_DEFAULT_BYTES = 1_024
"""A longer default is left out of a schema."""
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class _Call:
    """The parameters of a task's function, sorted by how an argument reaches them."""

    by_place: tuple[str, ...]
    by_name: frozenset[str]
    required: tuple[str, ...]
    schemas: Mapping[str, Schema]
    rest: Schema | None
    other: Schema | None


def schema_of(task: JobTask[..., Any]) -> dict[str, Schema]:
    """Return the schemas of `args` and of `kwargs`; see the module."""
    call = _call(task.func, task.takes_context)
    args: Schema = {"type": "array", "items": False if call.rest is None else call.rest}
    if call.by_place:
        args["prefixItems"] = [{"title": name, **call.schemas[name]} for name in call.by_place]
    kwargs: Schema = {
        "type": "object",
        "properties": {n: s for n, s in call.schemas.items() if n in call.by_name},
        "additionalProperties": False if call.other is None else call.other,
    }
    needed = [name for name in call.required if name in call.by_name]
    return {"args": args, "kwargs": kwargs | ({"required": needed} if needed else {})}


def misfits(task: JobTask[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Flaw]:
    """Return what is wrong with decoded JSON arguments for `task`; empty if they fit."""
    call = _call(task.func, task.takes_context)
    flaws = list(_places(call, args, kwargs))
    for position, value in enumerate(args):
        schema = (
            call.schemas[call.by_place[position]] if position < len(call.by_place) else call.rest
        )
        flaws += _wrong(schema or {}, value, f"/args/{position}")
    for name, value in kwargs.items():
        schema = call.schemas[name] if name in call.by_name else call.other
        flaws += _wrong(schema or {}, value, f"/kwargs/{escaped(name)}")
    return flaws


def escaped(name: str) -> str:
    """Return `name` as a step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _places(call: _Call, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Flaw]:
    """Yield what Python itself would refuse: too many, unknown, given twice, missing."""
    if len(args) > len(call.by_place) and call.rest is None:
        yield Flaw(f"/args/{len(call.by_place)}", f"takes at most {len(call.by_place)} in args.")
    given = call.by_place[: len(args)]
    for name in kwargs:
        if name not in call.by_name:
            if call.other is None:
                known = ", ".join(sorted(call.by_name)) or "none"
                yield Flaw(f"/kwargs/{escaped(name)}", f"is no argument of this task ({known}).")
        elif name in given:
            yield Flaw(f"/kwargs/{escaped(name)}", "is given in args, too.")
    for name in call.required:
        if name not in given and not (name in kwargs and name in call.by_name):
            yield Flaw("/kwargs" if name in call.by_name else "/args", f"{name!r} is missing.")


@cache
def _call(function: Any, takes_context: bool) -> _Call:
    hints = hints_of(function)
    parameters = signature_of(function, takes_context)
    schemas = {p.name: _schema(p, hints) for p in parameters}
    return _Call(
        by_place=tuple(p.name for p in parameters if p.kind in _BY_PLACE),
        by_name=frozenset(p.name for p in parameters if p.kind in _BY_NAME),
        required=tuple(
            p.name
            for p in parameters
            if p.kind in (*_BY_PLACE, Parameter.KEYWORD_ONLY) and p.default is Parameter.empty
        ),
        schemas=schemas,
        rest=_of_kind(Parameter.VAR_POSITIONAL, parameters, schemas),
        other=_of_kind(Parameter.VAR_KEYWORD, parameters, schemas),
    )


def _of_kind(
    kind: Any, parameters: Sequence[Parameter], schemas: Mapping[str, Schema]
) -> Schema | None:
    return next((schemas[p.name] for p in parameters if p.kind is kind), None)


def _schema(parameter: Parameter, hints: Mapping[str, Any]) -> Schema:
    schema = schema_of_hint(hints.get(parameter.name, Any))
    if parameter.default is None and schema and "type" in schema and not _takes(schema, None):
        schema = {"anyOf": [schema, {"type": "null"}]}  # `x: int = None`, as many still write it
    if parameter.default is Parameter.empty:
        return schema
    try:
        encode_value(parameter.default, MAX_DEFAULT_BYTES)
    except (InvalidArgument, UnsupportedType):
        return schema
    return {**schema, "default": parameter.default}


# --- values ---------------------------------------------------------------------------------------

_NAMES = {
    "null": "null",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "an object",
}


def _kinds(value: Any) -> tuple[str, ...]:
    """Return the JSON types of a decoded value, the narrowest first."""
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("boolean",)
    if isinstance(value, int):
        return ("integer", "number")
    if isinstance(value, float):
        return ("number",)
    if isinstance(value, str):
        return ("string",)
    return ("object",) if isinstance(value, Mapping) else ("array",)


def _takes(schema: Schema, value: Any) -> bool:
    return not _wrong(schema, value, "")


def _wrong(schema: Schema, value: Any, pointer: str) -> list[Flaw]:
    """Return what is wrong with `value` by a schema that `schema_of_hint` has made."""
    if "anyOf" in schema:
        return _wrong_in_all(schema["anyOf"], value, pointer)
    if "enum" in schema:
        if any(type(value) is type(each) and value == each for each in schema["enum"]):
            return []
        return [Flaw(pointer, f"must be one of {_listed(schema['enum'])}.")]
    if not _has_type(schema, value):
        return [Flaw(pointer, f"must be {_described(schema)}, not {_NAMES[_kinds(value)[0]]}.")]
    if isinstance(value, str):
        return _wrong_text(schema, value, pointer)
    if isinstance(value, Mapping):
        return _wrong_object(schema, value, pointer)
    if isinstance(value, Sequence):
        return _wrong_list(schema, value, pointer)
    if isinstance(value, float) and not math.isfinite(value):
        return [Flaw(pointer, "must be a number that JSON has.")]
    return []


def _has_type(schema: Schema, value: Any) -> bool:
    types = schema.get("type", _kinds(value))
    return not set([types] if isinstance(types, str) else types).isdisjoint(_kinds(value))


def _wrong_in_all(choices: Sequence[Schema], value: Any, pointer: str) -> list[Flaw]:
    """Return nothing if one of `choices` fits; what is wrong by the only one that could have."""
    if any(_takes(choice, value) for choice in choices):
        return []
    near = [choice for choice in choices if "enum" not in choice and _has_type(choice, value)]
    if len(near) == 1:
        return _wrong(near[0], value, pointer)
    return [Flaw(pointer, f"must be {' or '.join(map(_described, choices))}.")]


def _wrong_text(schema: Schema, value: str, pointer: str) -> list[Flaw]:
    name = schema.get("format")
    if name is None or FORMATS[name].reads(value):
        return []
    return [Flaw(pointer, f"must be {FORMATS[name].description}.")]


def _wrong_list(schema: Schema, value: Sequence[Any], pointer: str) -> list[Flaw]:
    first = schema.get("prefixItems", [])
    if "minItems" in schema and len(value) != schema["minItems"]:
        return [Flaw(pointer, f"must have {schema['minItems']} items, not {len(value)}.")]
    items = schema.get("items", {})
    flaws: list[Flaw] = []
    for position, item in enumerate(value):
        chosen = first[position] if position < len(first) else items
        flaws += _wrong(chosen, item, f"{pointer}/{position}")
    return flaws


def _wrong_object(schema: Schema, value: Mapping[str, Any], pointer: str) -> list[Flaw]:
    known = schema.get("properties", {})
    other = schema.get("additionalProperties", {})
    flaws = [
        Flaw(pointer, f"{n!r} is missing.") for n in schema.get("required", ()) if n not in value
    ]
    for name, item in value.items():
        place = f"{pointer}/{escaped(name)}"
        if name in known or other is not False:
            flaws += _wrong(known.get(name, other), item, place)
        else:
            flaws.append(Flaw(place, f"is not known; known are {', '.join(known) or 'none'}."))
    return flaws


def _described(schema: Schema) -> str:
    if "enum" in schema:
        return f"one of {_listed(schema['enum'])}"
    if "anyOf" in schema:
        return " or ".join(map(_described, schema["anyOf"]))
    types = schema.get("type", "anything")
    names = [types] if isinstance(types, str) else types
    return " or ".join(_NAMES.get(name, name) for name in names)


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(encode_value(value, 10_000, "value") for value in values)
