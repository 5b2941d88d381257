"""What a filter is: terms that all must hold. ``str()`` writes each as it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ARGS = "args"
OPERATOR_SIGNS = frozenset(":<>=")
_FIRST_NEEDS_QUOTES = frozenset('-"*')


@dataclass(frozen=True, slots=True)
class Value:
    """One value: its text, and on which sides anything may stand."""

    text: str
    any_before: bool = False
    any_after: bool = False

    @property
    def is_pattern(self) -> bool:
        return self.any_before or self.any_after

    def __str__(self) -> str:
        """Return the value as it is written, quoted if it must be."""
        if self.is_pattern:
            stars = not self.text and self.any_before and self.any_after
            return "*" if stars else "*" * self.any_before + self.text + "*" * self.any_after
        return quoted(self.text) if _needs_quotes(self.text) else self.text


@dataclass(frozen=True, slots=True)
class Term:
    """One condition. key: of `KEYS`, "args" with its `path`, or "" for free text."""

    key: str
    values: tuple[Value, ...]
    operator: str = ":"
    path: tuple[str, ...] = ()
    is_negated: bool = False

    def __str__(self) -> str:
        """Return the term as it is written."""
        sign = "-" if self.is_negated else ""
        if not self.key:
            text = self.values[0].text
            return sign + (quoted(text) if _is_ambiguous(text) else text)
        listed = ",".join(map(str, self.values))
        return f"{sign}{self.name}{self.operator}{listed}"

    @property
    def name(self) -> str:
        """The key with its path."""
        return ".".join((self.key, *map(_segment, self.path)))


@dataclass(frozen=True, slots=True)
class Filter:
    """Terms that all must hold; none: every job."""

    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        """Return the canonical text, which parses to an equal filter."""
        return " ".join(map(str, self.terms))

    def of(self, key: str) -> Iterator[Term]:
        """Yield the terms with this key."""
        return (term for term in self.terms if term.key == key)


def _needs_quotes(text: str) -> bool:
    return (
        not text
        or any(sign.isspace() or sign in ',"*' for sign in text)
        or any(sign in OPERATOR_SIGNS for sign in text[:2])
    )


def _segment(text: str) -> str:
    is_plain = not any(sign.isspace() or sign in OPERATOR_SIGNS or sign == "." for sign in text)
    return text if is_plain else quoted(text)


def _is_ambiguous(text: str) -> bool:
    """Return whether free text would be read as something else without quotes."""
    return (
        not text
        or text[0] in _FIRST_NEEDS_QUOTES
        or text.lower().startswith(f"{ARGS}.")
        or any(sign.isspace() or sign == '"' or sign in OPERATOR_SIGNS for sign in text)
    )


def quoted(text: str) -> str:
    """Return `text` in quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
