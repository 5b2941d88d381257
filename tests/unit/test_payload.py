"""Arguments, results and errors as text: the rules of `normalize_json` and JSON, and limits."""

import enum
import json
import math
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.compat import ImmediateBackend
from jobqueue.conf import MAX_MESSAGE_BYTES, MAX_PAYLOAD_DEPTH
from jobqueue.exceptions import InvalidArgument, PayloadTooLarge, UnsupportedType
from jobqueue.payload import (
    decode_arguments,
    describe_exception,
    encode_arguments,
    encode_value,
    error_fingerprint,
    normalized_message,
    round_trip,
    storable_text,
)

LIMIT = 1024 * 1024


class Color(enum.StrEnum):
    RED = "red"


class MixedColor(str, enum.Enum):  # noqa: UP042 - the older way, whose str() is another
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class MixedNumber(int, enum.Enum):
    ONE = 1


class Plain(enum.Enum):
    X = "x"


scalars = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
values = st.recursive(
    scalars.filter(lambda v: v not in (math.inf, -math.inf)) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(values)
def test_plain_json_comes_back_as_it_was(value):
    assert round_trip(value, LIMIT) == value


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ((1, 2), [1, 2]),
        ({"a": (1,)}, {"a": [1]}),
        ({1: "a", None: "b", False: "c"}, {"1": "a", "null": "b", "false": "c"}),
        ({1.5: "a"}, {"1.5": "a"}),
        (SimpleLazyObject(lambda: "x"), "x"),
        (b"abc", "abc"),
        ({b"k": b"v"}, {"k": "v"}),
        (Color.RED, "red"),
        (MixedColor.RED, "red"),
        ({MixedColor.RED: [MixedColor.RED]}, {"red": ["red"]}),
        (Number.ONE, 1),
        (MixedNumber.ONE, 1),
        ({MixedNumber.ONE: 1}, {"1": 1}),
        ({Color.RED: Number.ONE}, {"red": 1}),
        (range(3), [0, 1, 2]),
        ("\U0001f600 naïve", "\U0001f600 naïve"),
    ],
)
def test_what_changes_its_type_changes_it_alike_everywhere(given, seen):
    found = round_trip(given, LIMIT)
    assert found == seen
    assert type(found) is type(seen)


@pytest.mark.parametrize(
    ("value", "way_out"),
    [
        ({1, 2}, "sorted(value)"),
        (frozenset(), "sorted(value)"),
        (datetime(2026, 1, 1, tzinfo=UTC), "isoformat()"),
        (date(2026, 1, 1), "isoformat()"),
        (Decimal("1.10"), "str(value)"),
        (uuid.uuid4(), "str(value)"),
        (Plain.X, "str(value)"),
        (gettext_lazy("Order"), "str(value)"),
        (object(), "str(value)"),
        (bytearray(b"x"), "str(value)"),
        (lambda: None, "str(value)"),
        (1j, "str(value)"),
    ],
)
@pytest.mark.parametrize("place", ["args[0]", "args[0]['k'][1]", "kwargs['name']"])
def test_a_type_that_cannot_travel_is_a_type_error_with_its_place_and_the_way_out(
    value, way_out, place
):
    args, kwargs = {
        "args[0]": ([value], {}),
        "args[0]['k'][1]": ([{"k": [0, value]}], {}),
        "kwargs['name']": ([], {"name": value}),
    }[place]
    with pytest.raises(TypeError) as caught:
        encode_arguments(args, kwargs, LIMIT)
    assert isinstance(caught.value, UnsupportedType)
    assert str(caught.value).startswith(f"{place} is a ")
    assert way_out in str(caught.value)


def test_a_model_instance_is_refused_with_the_advice_to_pass_its_key():
    from django.contrib.auth.models import Group

    with pytest.raises(TypeError, match=r"pass obj\.pk"):
        encode_arguments([Group(name="x")], {}, LIMIT)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        [math.nan],
        {"x": {"y": math.inf}},
        "a\x00b",
        "\ud800",
        {"\x00": 1},
        {math.nan: 1},
        b"\xff",
        {1: "a", "1": "b"},
    ],
)
def test_a_value_that_cannot_travel_is_a_value_error(value):
    with pytest.raises(ValueError) as caught:
        encode_arguments([value], {}, LIMIT)
    assert isinstance(caught.value, InvalidArgument)
    with pytest.raises(ValueError):
        encode_value(value, LIMIT)


def test_an_integer_that_cannot_be_read_back_is_refused():
    with pytest.raises(ValueError, match="integer"):
        encode_value(10**5_000, LIMIT)


@pytest.mark.parametrize("key", ["a\x00b", "\ud800"])
def test_the_names_of_keywords_are_held_to_the_same_rules(key):
    with pytest.raises(ValueError):
        encode_arguments([], {key: 1}, LIMIT)


def test_depth_is_limited_and_a_value_that_contains_itself_is_too_deep():
    value: list = []
    for _ in range(MAX_PAYLOAD_DEPTH - 1):
        value = [value]
    assert round_trip(value, LIMIT) == value
    with pytest.raises(ValueError, match="deep"):
        encode_value([value], LIMIT)
    endless: list = []
    endless.append(endless)
    with pytest.raises(ValueError, match="deep"):
        encode_value(endless, LIMIT)


def test_the_size_is_counted_in_bytes():
    assert encode_value("é" * 49, 100)
    with pytest.raises(PayloadTooLarge, match="limit is 100"):
        encode_value("é" * 50, 100)


@given(st.lists(values), st.dictionaries(texts, values))
def test_a_call_comes_back_as_it_was(args, kwargs):
    assert decode_arguments(encode_arguments(args, kwargs, LIMIT)) == (args, kwargs)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", "[]", "null", '{"args": []}', '{"args": {}, "kwargs": {}}', "[" * 10_000,
        '{"args": [], "kwargs": {}} {}', '{"args": [], "kwargs": {}}]',
    ],
)  # fmt: skip
def test_text_that_is_no_call_is_a_clear_error(text):
    with pytest.raises(InvalidArgument, match="stored arguments"):
        decode_arguments(text)


def test_a_call_may_have_space_around_it():
    assert decode_arguments('\n {"args": [1], "kwargs": {}}\t\n') == ([1], {})


def test_our_rules_take_what_the_frameworks_take():
    """What Django's own backends accept, and JSON can hold, is accepted here, with one result."""
    normalize_json = _normalize_json()
    for value in [(1, (2, b"x")), {"a": [Color.RED]}, "x", None, True, 1.5, [range(2)]]:
        expected = json.loads(json.dumps(normalize_json(value)))
        assert round_trip(value, LIMIT) == expected


def _normalize_json():
    import sys

    return sys.modules[ImmediateBackend.__module__].normalize_json


# --- errors as text --------------------------------------------------------------------------


def caught(raiser):
    try:
        raiser()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text for you")


class Demanding(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


def test_an_exception_becomes_its_class_its_message_and_its_traceback():
    def raiser():
        raise ValueError("order 7 is gone")

    text = describe_exception(caught(raiser), 10_000)
    assert text.class_path == "builtins.ValueError"
    assert text.message == "order 7 is gone"
    assert "in raiser" in text.traceback
    assert text.traceback.endswith("ValueError: order 7 is gone\n")


def test_an_exception_whose_text_raises_is_described_all_the_same():
    text = describe_exception(Mute(), 10_000)
    assert text.class_path.endswith("test_payload.Mute")
    assert "RuntimeError" in text.message


def test_an_exception_that_could_not_be_rebuilt_is_only_text():
    assert "1" in describe_exception(Demanding(1, object()), 10_000).message


def test_groups_and_chains_are_in_the_traceback():
    def raiser():
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ExceptionGroup("several", [ValueError("one"), TypeError("two")]) from error

    text = describe_exception(caught(raiser), 10_000)
    for part in ("inner", "several", "one", "two"):
        assert part in text.traceback


def test_runaway_recursion_and_huge_messages_stay_within_their_limits():
    def runaway():
        runaway()

    text = describe_exception(caught(runaway), 4_096)
    assert len(text.traceback.encode()) <= 4_096
    text = describe_exception(ValueError("é" * 10_000_000), 4_096)
    assert len(text.message.encode()) <= MAX_MESSAGE_BYTES
    assert len(text.traceback.encode()) <= 4_096


@given(st.text(), st.integers(40, 400))
def test_storable_text_fits_and_every_database_takes_it(text, limit):
    stored = storable_text(text, limit)
    assert len(stored.encode()) <= max(limit, 160)
    assert "\x00" not in stored


def test_storable_text_keeps_head_and_tail():
    stored = storable_text("head" + "x" * 5_000 + "tail", 500)
    assert stored.startswith("head")
    assert stored.endswith("tail")
    assert storable_text("plain", 500) == "plain"
    assert storable_text("a\x00b\ud800", 500) == "a\\x00b\\ud800"


def test_errors_alike_but_for_numbers_ids_and_quotes_share_a_fingerprint():
    one = error_fingerprint("E", "order 17 of '3' at 0x7f00 failed\nmore")
    assert one == error_fingerprint("E", "order 18 of 'x' at 0x7e11 failed")
    assert one != error_fingerprint("F", "order 17 of '3' at 0x7f00 failed")
    assert one != error_fingerprint("E", "payment 17 of '3' at 0x7f00 failed")


@pytest.mark.parametrize(
    ("message", "normalized"),
    [
        ("can't open 'a b' or \"c\"", "can't open '…' or '…'"),
        ("'it's me' isn't here", "'…' isn't here"),
        ("GET https://shop.example/x?y=1 failed", "GET <address> failed"),
        ("no mailbox a.b+c@shop.example.com", "no mailbox <address>"),
        ("job 01890a5d-ac96-774b-bcce-b302099a8057 gone", "job # gone"),
        ("commit deadbeef12 at 10.0.0.1:5432 took 1,234.5 s", "commit # at # took # s"),
        ("effaced and defaced the facade", "effaced and defaced the facade"),
        ("two\tblanks  here", "two blanks here"),
        ("first line 1\nsecond line", "first line #"),
        ("", ""),
    ],
)
def test_what_differs_between_alike_errors_is_replaced(message, normalized):
    assert normalized_message(message) == normalized


def test_a_long_message_is_normalized_by_its_beginning():
    assert error_fingerprint("E", "x" * 500 + "a") == error_fingerprint("E", "x" * 500 + "b")
