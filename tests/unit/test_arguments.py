"""Whether a call fits a function is judged as Python judges it, and before anything is written."""

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.engine.arguments import check_call


def nothing(): ...
def one(a): ...
def default(a, b=1): ...
def positional_only(a, b=1, /, c=2): ...
def keyword_only(a, *, b, c=3): ...
def anything(*args, **kwargs): ...
def some(a, b=1, *args, c, d=4, **kwargs): ...
def hidden(a, /, **kwargs): ...
def with_context(context, a, b=2, **kwargs): ...
async def coroutine(a, *, b=1): ...


FUNCTIONS = [
    nothing,
    one,
    default,
    positional_only,
    keyword_only,
    anything,
    some,
    hidden,
    with_context,
]
calls = st.tuples(
    st.lists(st.integers(), max_size=4),
    st.dictionaries(st.sampled_from(["a", "b", "c", "d", "context", "self", "z"]), st.integers()),
)


def fits(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except TypeError:
        return False
    return True


def accepted(function, takes_context, args, kwargs):
    try:
        check_call(function, takes_context, args, kwargs)
    except TypeError:
        return False
    return True


@given(st.sampled_from(FUNCTIONS), calls)
def test_a_call_is_accepted_exactly_when_python_accepts_it(function, call):
    args, kwargs = call
    assert accepted(function, False, args, kwargs) == fits(function, *args, **kwargs)


@given(st.sampled_from([f for f in FUNCTIONS if f is not nothing]), calls)
def test_a_context_takes_the_first_place(function, call):
    args, kwargs = call
    assert accepted(function, True, args, kwargs) == fits(function, None, *args, **kwargs)


def test_the_error_names_the_function_and_what_is_wrong():
    with pytest.raises(TypeError, match=r"test_arguments\.default\(\): missing .*'a'"):
        check_call(default, False, [], {})
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        check_call(default, False, [1], {"x": 1})
    with pytest.raises(TypeError, match="too many positional"):
        check_call(coroutine, False, [1, 2], {})
    with pytest.raises(TypeError, match="multiple values"):
        check_call(with_context, True, [1], {"context": 1})


def test_a_wrapper_is_judged_by_its_own_parameters():
    """It may give the function more than it was given."""

    def injecting(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function("session", *args, **kwargs)

        return wrapper

    @injecting
    def save(session, order_id): ...

    check_call(save, False, [7], {})


def test_annotations_are_not_evaluated():
    def annotated(a: "NoSuchName", b: "Order" = 1): ...  # noqa: F821

    check_call(annotated, False, [1], {"b": 2})
    with pytest.raises(TypeError):
        check_call(annotated, False, [], {"c": 1})
