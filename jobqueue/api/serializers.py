"""Serializers that refuse what they do not know, and errors with pointers.

    class Reason(StrictSerializer):
        reason = serializers.CharField(max_length=255, required=False, default="")

`checked` runs one over a body, `checked_query` over the query string. A serializer with names
that are not fixed (``args.user_id=42``) overrides `is_known`, and finds them in `initial_data`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from django.http import QueryDict
from rest_framework import serializers
from rest_framework.settings import api_settings

from jobqueue.api.problems import FieldError, Problem, pointer


class StrictSerializer(serializers.Serializer[Any]):  # type: ignore[type-arg,unused-ignore]
    """A serializer that takes its own fields only. open_ended: also those of `is_known`."""

    open_ended: ClassVar[bool] = False

    def is_known(self, name: str) -> bool:
        """Return whether there may be a field or parameter `name`."""
        return name in self.fields and not self.fields[name].read_only

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated values; unknown names are errors like others."""
        unknown = [name for name in data if not self.is_known(name)] if _has_names(data) else []
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if unknown and isinstance(error.detail, dict):
                raise serializers.ValidationError(
                    {**error.detail, **_unknown(self, unknown)}
                ) from None
            raise
        if unknown:
            raise serializers.ValidationError(_unknown(self, unknown))
        return values


def _has_names(data: Any) -> bool:
    return isinstance(data, Mapping)


def _unknown(serializer: StrictSerializer, names: list[str]) -> dict[str, list[str]]:
    known = ", ".join(n for n, f in serializer.fields.items() if not f.read_only) or "none"
    return {name: [f"is unknown; known are {known}"] for name in names}


def checked(cls: type[Any], data: Any, **kwargs: Any) -> dict[str, Any]:
    """Return what `cls` makes of a body. Raise Problem with a pointer to all that is wrong."""
    serializer = cls(data=data, **kwargs)
    if not serializer.is_valid():
        raise Problem("invalid-fields", errors=list(_errors(serializer.errors)))
    values: dict[str, Any] = serializer.validated_data
    return values


def checked_query(cls: type[Any] | None, query: QueryDict, **kwargs: Any) -> dict[str, Any]:
    """Return what `cls` makes of a query string; None takes no parameter."""
    if cls is None and not query:
        return {}
    if errors := list(_odd(cls, query)):
        raise Problem("invalid-parameters", errors=errors)
    # Not the QueryDict itself: of one REST framework takes an empty value for one not given.
    plain = {name: vs if _is_list(cls, name) else vs[0] for name, vs in query.lists()}
    serializer = (cls or StrictSerializer)(data=plain, **kwargs)
    if not serializer.is_valid():
        found = (
            FieldError(error.detail, parameter=(error.pointer or "/").split("/")[1])
            for error in _errors(serializer.errors)
        )
        raise Problem("invalid-parameters", errors=list(found))
    values: dict[str, Any] = serializer.validated_data
    return values


def _odd(cls: type[Any] | None, query: QueryDict) -> Iterator[FieldError]:
    """Yield parameters that no serializer should see: repeated, or no text."""
    for name, values in query.lists():
        if len(values) > 1 and not _is_list(cls, name):
            yield FieldError("is given more than once", parameter=_printable(name))
        if not all(_is_text(value) for value in (name, *values)):
            why = "holds a NUL character or a lone surrogate"
            yield FieldError(why, parameter=_printable(name))


def _is_list(cls: type[Any] | None, name: str) -> bool:
    field = getattr(cls, "_declared_fields", {}).get(name)
    return isinstance(field, serializers.ListField | serializers.MultipleChoiceField)


def _is_text(value: str) -> bool:
    return "\x00" not in value and not any("\ud800" <= sign <= "\udfff" for sign in value)


def _printable(name: str) -> str:
    return name.encode("ascii", "backslashreplace").decode().replace("\x00", "\\x00")


def _errors(found: Any, path: tuple[str | int, ...] = ()) -> Iterator[FieldError]:
    """Yield each of REST framework's nested errors with a pointer to its place."""
    if isinstance(found, Mapping):
        for key, below in found.items():
            inner = key == api_settings.NON_FIELD_ERRORS_KEY
            yield from _errors(below, path if inner else (*path, key))
    elif isinstance(found, list) and any(isinstance(item, Mapping | list) for item in found):
        for position, below in enumerate(found):
            yield from _errors(below, (*path, position))
    else:
        for text in found if isinstance(found, list) else [found]:
            yield FieldError(str(text), pointer=pointer(*path))
