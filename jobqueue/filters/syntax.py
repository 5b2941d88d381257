"""Text to terms and back. Pure: neither the database nor the clock is asked.

    filter   := term*
    term     := ["-"] (key operator value ("," value)* | text)
    key      := a name of `KEYS`, or "args" ("." segment)+
    operator := ":" | ">" | ">=" | "<" | "<="
    value    := bare | quoted; a bare one may begin or end with "*"
    quoted   := '"' … '"', in which \\" and \\\\ stand for " and \\

What the keys mean is in `jobqueue.filters.keys`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import NoReturn

from jobqueue.exceptions import InvalidFilter
from jobqueue.filters.keys import KEYS, Key
from jobqueue.filters.terms import ARGS, OPERATOR_SIGNS, Filter, Term, Value, quoted

MAX_FILTER_LENGTH = 4_000
"""Characters: a link that carries one still fits into what servers take."""
MAX_TERMS = 50
MAX_ALTERNATIVES = 100
"""Values of one term: beyond them ids are given as such."""
MAX_PATH_SEGMENTS = 8

OPERATORS = (">=", "<=", ">", "<", ":")


def term(key: str, *values: str) -> Term:
    """Return a term for code that chooses by plain values. Raise InvalidFilter for a wrong one."""
    (made,) = parse(f"{key}:{','.join(map(quoted, values))}").terms
    return made


def parse(text: str) -> Filter:
    """Return what `text` says. Raise InvalidFilter with the place of the first thing wrong."""
    return Filter(tuple(_Reader(text).terms()))


class _Reader:
    """Reads one filter from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def terms(self) -> Iterator[Term]:
        """Yield the terms in their order."""
        self._check_text()
        count = 0
        while self._skip_spaces():
            start = self._at
            yield self._term()
            count += 1
            if count > MAX_TERMS:
                self._fail(f"A filter has at most {MAX_TERMS} terms.", start)
            if self._at < len(self._text) and not self._text[self._at].isspace():
                self._fail("A space belongs between two terms.", self._at, 1)

    def _check_text(self) -> None:
        if len(self._text) > MAX_FILTER_LENGTH:
            self._fail(f"A filter has at most {MAX_FILTER_LENGTH:,} characters.", MAX_FILTER_LENGTH)
        for position, sign in enumerate(self._text):
            if sign == "\x00" or "\ud800" <= sign <= "\udfff":
                self._fail("This character cannot be part of any text that is stored.", position, 1)

    # --- terms --------------------------------------------------------------------------------

    def _term(self) -> Term:
        is_negated = self._peek() == "-" and not self._is_end(self._at + 1)
        self._at += is_negated
        start = self._at
        if self._peek() == '"':
            text = self._quoted()
            if not text:
                self._fail("There is nothing between these quotes.", start)
            return Term("", (Value(text),), is_negated=is_negated)
        name = self._run(OPERATOR_SIGNS | {'"'})
        if self._peek() in OPERATOR_SIGNS or name.lower().startswith(f"{ARGS}."):
            return self._key_term(name, start, is_negated)
        if self._peek() == '"':
            self._fail("Put the whole text into the quotes.", self._at, 1)
        return Term("", (Value(name),), is_negated=is_negated)

    def _key_term(self, name: str, start: int, is_negated: bool) -> Term:
        first = name.partition(".")[0].lower()
        if first == ARGS:
            self._at = start + len(ARGS)
            path = self._path(start)
        else:
            first, path = name.lower(), ()
        key = KEYS.get(first)
        if key is None:
            self._unknown_key(name, start)
        operator = self._operator(key, start)
        values = self._values(key, operator)
        return Term(key.name, values, operator, path, is_negated)

    def _path(self, start: int) -> tuple[str, ...]:
        segments: list[str] = []
        while self._peek() == ".":
            self._at += 1
            at = self._at
            segment = self._quoted() if self._peek() == '"' else self._run(OPERATOR_SIGNS | {"."})
            if not segment or '"' in segment or "\\" in segment:
                self._fail("A name in the arguments has no quotes and is not empty.", at)
            segments.append(segment)
        if not segments:
            self._fail("Say which argument, as in args.user_id:42 or args.0:42.", start)
        if len(segments) > MAX_PATH_SEGMENTS:
            self._fail(f"A path has at most {MAX_PATH_SEGMENTS} names.", start)
        return tuple(segments)

    def _unknown_key(self, name: str, start: int) -> NoReturn:
        word = self._word_from(start)
        if not name:
            self._fail(f"To search for this text, put it in quotes: {quoted(word)}.", start)
        alike = difflib.get_close_matches(name.lower(), KEYS, n=1)
        meant = f" Did you mean {alike[0]}?" if alike else f" Keys are {', '.join(KEYS)}."
        self._fail(
            f"There is no key {name!r}.{meant} To search for this text, put it in quotes: "
            f"{quoted(word)}.",
            start,
            len(name),
        )

    def _operator(self, key: Key, start: int) -> str:
        at = self._at
        for operator in OPERATORS:
            if self._text.startswith(operator, at):
                break
        else:
            self._fail(f"Write {key.example}.", start)
        if operator not in key.operators:
            self._fail(f"{key.name} takes {' '.join(key.operators)}, as in {key.example}.", at)
        self._at = at + len(operator)
        return operator

    # --- values -------------------------------------------------------------------------------

    def _values(self, key: Key, operator: str) -> tuple[Value, ...]:
        values = [self._value(key)]
        while self._peek() == ",":
            if operator != ":":
                self._fail("Only one value can be compared with.", self._at, 1)
            self._at += 1
            if len(values) == MAX_ALTERNATIVES:
                self._fail(f"At most {MAX_ALTERNATIVES} values stand in one term.", self._at)
            values.append(self._value(key))
        return tuple(values)

    def _value(self, key: Key) -> Value:
        start = self._at
        value = Value(self._quoted()) if self._peek() == '"' else self._bare(key)
        if not value.text and not value.is_pattern:
            self._fail(f"{key.name} needs a value, as in {key.example}.", start, 1)
        if value.is_pattern:
            return value
        try:
            return Value(key.parse(value.text))
        except ValueError as error:
            self._fail(str(error), start, self._at - start)

    def _bare(self, key: Key) -> Value:
        start = self._at
        text = self._run({",", '"'})
        if self._peek() == '"':
            self._fail("Put the whole value into the quotes.", self._at, 1)
        if not key.has_patterns or "*" not in text:
            return Value(text)
        if text == "*":
            return Value("", True, True)
        inner = text.removeprefix("*").removesuffix("*")
        if "*" in inner or not inner:
            self._fail("A * stands at the beginning or end of a value; or quote it.", start)
        return Value(inner, text.startswith("*"), text.endswith("*"))

    def _quoted(self) -> str:
        """Return the text in the quotes that begin here."""
        start = self._at
        self._at += 1
        found: list[str] = []
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign == '"':
                self._at += 1
                return "".join(found)
            if sign == "\\" and self._text[self._at + 1 : self._at + 2] in ('"', "\\"):
                self._at += 1
                sign = self._text[self._at]
            found.append(sign)
            self._at += 1
        self._fail("These quotes are not closed.", start)

    # --- signs --------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _is_end(self, position: int) -> bool:
        return position >= len(self._text) or self._text[position].isspace()

    def _skip_spaces(self) -> bool:
        """Go to the next term; return whether there is one."""
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at < len(self._text)

    def _run(self, stops: frozenset[str] | set[str]) -> str:
        """Return what stands here up to a space or one of `stops`."""
        start = self._at
        while not self._is_end(self._at) and self._text[self._at] not in stops:
            self._at += 1
        return self._text[start : self._at]

    def _word_from(self, start: int) -> str:
        return self._text[start:].split(maxsplit=1)[0]

    def _fail(self, problem: str, position: int, length: int | None = None) -> NoReturn:
        if length is None:
            word = self._text[position:].split(maxsplit=1)
            length = len(word[0]) if word and not self._is_end(position) else 1
        raise InvalidFilter(problem, text=self._text, position=position, length=max(length, 1))
