"""What an option may be: parsers of values, and the field that carries one. Pure.

A parser returns the value to use, or raises ValueError with what it must be ("must be True or
False"); whoever reads the settings adds the option's name and what was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from datetime import timedelta
from typing import Any


def number(low: float, high: float) -> Callable[[Any], float]:
    """Return a parser of numbers from `low` to `high`; a timedelta becomes seconds."""

    def parse(value: Any) -> float:
        if isinstance(value, timedelta):
            value = value.total_seconds()
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("must be a number (of seconds, where it is a time)")
        if not low <= value <= high:
            raise ValueError(f"must be between {low:g} and {high:g}")
        return float(value)

    return parse


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Return a parser of whole numbers from `low` to `high`."""

    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError("must be a whole number")
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return parse


def flag(value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool):
        raise ValueError("must be True or False")
    return value


def text(value: Any) -> str:
    """Return `value` if it is text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("must be a non-empty string")
    return value


def optional_text(value: Any) -> str | None:
    """Return `value` if it is None, or text that is not empty."""
    return None if value is None else text(value)


def paths(value: Any) -> tuple[str, ...]:
    """Return a list of dotted paths as a tuple."""
    if isinstance(value, str) or not all(isinstance(v, str) for v in value):
        raise ValueError("must be a list of dotted paths")
    return tuple(value)


def choice(*choices: str) -> Callable[[Any], str]:
    """Return a parser that takes one of `choices`."""

    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return str(value)

    return parse


def option(default: Any, parse: Callable[[Any], Any], doc: str, *, factory: bool = False) -> Any:
    """Return the field of an option: its default, its parser, and what the reference says of it."""
    metadata = {"parse": parse, "doc": doc}
    if factory:
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)
