"""Arguments that came as JSON: whether they fit a task, and what its schema says."""

import datetime
import enum
import typing
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NewType,
    NotRequired,
    Optional,
    TypedDict,
    Union,
)

import pytest

from jobqueue import task
from jobqueue.engine.signatures import misfits, schema_of

if TYPE_CHECKING:
    from nowhere import Missing


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(TypedDict):
    city: str
    zip: NotRequired[int]


class Tree(TypedDict):
    branches: "list[Tree]"


OrderId = NewType("OrderId", int)
type Names = list[str]


@task(takes_context=True)
def charge(context: "Missing", order_id: int, note: str = "", *, urgent: bool = False):
    """Take the money."""


@task
def anything(value: "Missing", *rest: int, **others: str): ...


def wrapped(function):
    @wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


@task
@wrapped
def decorated(number: int): ...


@task
def by_place(a: int, b: int = 1, /, c: int | None = None): ...


NEVER = datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC)


@task
def old_style(count: int = None, when: datetime.datetime = NEVER): ...  # noqa: RUF013


def places(task, *args, **kwargs):
    return [flaw.pointer for flaw in misfits(task, args, kwargs)]


@pytest.mark.parametrize(
    ("args", "kwargs", "wrong"),
    [
        ((1,), {}, []),
        ((), {"order_id": 1, "urgent": True, "note": "x"}, []),
        ((), {}, ["/kwargs"]),
        ((1, "x", True), {}, ["/args/2"]),
        ((1,), {"order_id": 2}, ["/kwargs/order_id"]),
        ((1,), {"context": 1, "a/b~": 2}, ["/kwargs/context", "/kwargs/a~1b~0"]),
        (("1",), {"note": 2, "urgent": 1}, ["/args/0", "/kwargs/note", "/kwargs/urgent"]),
        ((True,), {}, ["/args/0"]),
        ((1.0,), {}, ["/args/0"]),
    ],
)
def test_each_flaw_has_its_place(args, kwargs, wrong):
    assert places(charge, *args, **kwargs) == wrong


def test_flaws_say_what_to_do():
    (flaw,) = misfits(charge, ["7"], {})
    assert flaw.detail == "must be an integer, not text."
    (flaw,) = misfits(charge, [7], {"to": 1})
    assert flaw.detail == "is no argument of this task (note, order_id, urgent)."


def test_rest_and_keywords_are_checked_too():
    assert places(anything, {"any": []}, 1, 2, name="x") == []
    assert places(anything, None, 1, "2", name=3) == ["/args/2", "/kwargs/name"]


def test_positional_only_arguments_have_no_name():
    assert places(by_place, 1, 2, 3) == []
    assert places(by_place, 1, c=None) == []
    assert places(by_place, a=1) == ["/kwargs/a", "/args"]


def test_a_wrapper_takes_what_it_takes():
    assert places(decorated, "text", also=1) == []


def test_a_default_of_none_makes_none_fit():
    assert places(old_style, None) == []
    assert places(old_style, "x") == ["/args/0"]
    assert "default" not in schema_of(old_style)["kwargs"]["properties"]["when"]


FITS = [
    (int, [1, -(10**30)], [1.0, True, "1", None]),
    (float, [1, 1.5], [True, "1"]),
    (bool, [True], [1, 0, None]),
    (str, ["", "é"], [1, None, []]),
    (None, [None], [0, ""]),
    (int | None, [1, None], ["1"]),
    (Optional[str], ["x", None], [1]),  # noqa: UP045
    (Union[int, list[str]], [1, ["a"]], [[1], "a"]),  # noqa: UP007
    (Literal["a", 1, None], ["a", 1, None], ["b", True, 1.0]),
    (Color, ["red"], ["green", 1]),
    (list, [[], [1, "a"]], [{}, "ab"]),
    (typing.List, [[1]], ["a"]),  # noqa: UP006
    (list[int], [[], [1]], [[1, "a"], {"0": 1}]),
    (Sequence[Any], [[1, None]], ["ab"]),
    (tuple[int, str], [[1, "a"]], [[1], [1, "a", 2], ["a", 1]]),
    (tuple[int, ...], [[], [1, 2]], [["a"]]),
    (dict[str, int], [{}, {"a": 1}], [{"a": "b"}, []]),
    (Mapping[str, Any], [{"a": []}], [[]]),
    (Address, [{"city": "x"}, {"city": "x", "zip": 1}], [{}, {"city": 1}, {"city": "x", "y": 1}]),
    (Tree, [{"branches": [{"branches": []}]}], [{}, []]),
    (Names, [["a"]], [[1]]),
    (OrderId, [1], ["1"]),
    (Annotated[int, "of an order"], [1], ["1"]),
    (datetime.datetime, ["2030-01-31T08:00:00Z"], ["yesterday", 1, "2030-13-31T08:00:00Z"]),
    (datetime.date, ["2030-01-31"], ["2030-02-31"]),
    (datetime.timedelta, ["P1DT2H", "1 02:00:00"], ["soon"]),
    (uuid.UUID, ["01890a5d-ac96-774b-bcce-b302099a8057"], ["1"]),
    (Decimal, ["12.50"], ["much", 1.5]),
    (object, [None, 1, "a", []], []),
    ("Missing", [None, 1, "a", []], []),
    (set[int], [[1], "a"], []),
]


@pytest.mark.parametrize(("hint", "good", "bad"), FITS, ids=[str(hint)[:40] for hint, _, _ in FITS])
def test_values_fit_their_hint(hint, good, bad):
    def function(value): ...

    function.__annotations__ = {"value": hint}
    function.__qualname__ = "function"
    made = task(function)
    for value in good:
        assert misfits(made, [value], {}) == [], value
    for value in bad:
        assert misfits(made, [value], {}) != [], value


def test_inner_places_are_pointed_at():
    @wraps(charge.func)
    def function(address, pairs): ...

    function.__annotations__ = {"address": Address | None, "pairs": list[tuple[str, int]]}
    function.__qualname__ = "inner"
    made = task(function)
    assert places(made, {"city": 1, "b~": 2}, [["a", 1], ["b", "c"]]) == [
        "/args/0/city",
        "/args/0/b~0",
        "/args/1/1/1",
    ]


def test_the_schema_says_what_is_checked():
    assert schema_of(charge) == {
        "args": {
            "type": "array",
            "items": False,
            "prefixItems": [
                {"title": "order_id", "type": "integer"},
                {"title": "note", "type": "string", "default": ""},
            ],
        },
        "kwargs": {
            "type": "object",
            "properties": {
                "order_id": {"type": "integer"},
                "note": {"type": "string", "default": ""},
                "urgent": {"type": "boolean", "default": False},
            },
            "additionalProperties": False,
            "required": ["order_id"],
        },
    }
