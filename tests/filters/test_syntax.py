"""The language: what is read, what is refused and where, and that writing is the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.exceptions import InvalidArgument, InvalidFilter
from jobqueue.filters import KEYS, STATE_GROUPS, Filter, Term, Value, parse, syntax, term
from jobqueue.filters.keys import EQUAL, MAX_NUMBER
from jobqueue.states import State


def only(text: str) -> Term:
    (found,) = parse(text).terms
    return found


# --- what is read ---------------------------------------------------------------------------------


def test_terms_stand_side_by_side():
    found = parse('  state:dead queue:mail  -tag:vip "no such order" ')
    assert [term.key for term in found.terms] == ["state", "queue", "tag", ""]
    assert [term.is_negated for term in found.terms] == [False, False, True, False]


def test_nothing_is_the_filter_that_every_job_matches():
    assert parse("") == parse(" \t\n") == Filter()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("queue:mail,default", ["mail", "default"]),
        ('queue:"a b",c', ["a b", "c"]),
        ('tag:"say \\"hi\\", \\\\o/"', ['say "hi", \\o/']),
        ("tag:order:42", ["order:42"]),
        ("created_by:=kim", ["=kim"]),
        ("STATE:Dead", ["dead"]),
        ("priority:+05", ["5"]),
        ("id:01890A5DAC96774BBCCEB302099A8057", ["01890a5d-ac96-774b-bcce-b302099a8057"]),
    ],
)
def test_values_are_what_is_written(text, values):
    assert [value.text for value in only(text).values] == values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("queue:mail*", Value("mail", False, True)),
        ("queue:*mail", Value("mail", True, False)),
        ("queue:*mail*", Value("mail", True, True)),
        ("queue:*", Value("", True, True)),
        ('queue:"mail*"', Value("mail*")),
        ("tag:vip*", Value("vip*")),
    ],
)
def test_star_at_an_end_stands_for_anything_where_a_key_takes_it(text, value):
    assert only(text).values == (value,)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("args.user_id:42", ("user_id",)),
        ("args.0:42", ("0",)),
        ("args.order.lines.0.sku:x", ("order", "lines", "0", "sku")),
        ('args."a.b"."c d":x', ("a.b", "c d")),
        ("args.User_Id:42", ("User_Id",)),
    ],
)
def test_path_leads_into_the_arguments(text, path):
    assert (only(text).key, only(text).path) == ("args", path)


@pytest.mark.parametrize("operator", [">", ">=", "<", "<="])
def test_numbers_and_times_are_compared(operator):
    assert only(f"priority{operator}-5").operator == operator
    assert only(f"created{operator}2026-01-01T12:30").values[0].text == "2026-01-01T12:30"


def test_everything_else_is_text():
    assert only("timeout") == Term("", (Value("timeout"),))
    assert only("-timeout").is_negated
    assert only('"state:dead"') == Term("", (Value("state:dead"),))
    assert only("-") == Term("", (Value("-"),))


def test_code_makes_terms_of_plain_values():
    assert str(Filter((term("queue", "a,b", "c*"),))) == 'queue:"a,b","c*"'
    with pytest.raises(InvalidFilter, match="no state"):
        term("state", "failed")


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("state:dead qeue:mail", "qeue", "Did you mean queue"),
        ("colour:red", "colour", "Keys are state, queue"),
        ("http://shop", "http", 'in quotes: "http://shop"'),
        ("state:daed", "daed", "Did you mean dead"),
        ("state:xyz", "xyz", "States are scheduled"),
        ("queue:", "", "needs a value, as in queue:mail"),
        ("queue:a,", "", "needs a value"),
        ('queue:""', '"', "needs a value"),
        ("state=dead", "state=dead", "Write state:dead"),
        ("queue>mail", ">mail", "queue takes :"),
        ("created:2026-01-01", ":2026-01-01", "created takes > >= < <="),
        ("created>yesterday", "yesterday", "-2h (two hours ago)"),
        ("created>1969-12-31", "1969-12-31", "between 1970 and 9999"),
        ("created>2026-02-30", "2026-02-30", "This is no time"),
        ("priority>high", "high", "no whole number"),
        ("priority:99999999999", "99999999999", "no number up to"),
        ("priority>1,2", ",", "Only one value"),
        ("id:17", "17", "Not the id of a job"),
        ("state:de*", "de*", "no state 'de*'"),
        ("queue:a*b", "a*b", "beginning or end"),
        ("args:42", "args:42", "Say which argument"),
        ("args.:42", ":42", "is not empty"),
        ("args.a", "args.a", "Write args.user_id:42"),
        ('tag:"open', '"open', "not closed"),
        ('a"b"', '"', "whole text into the quotes"),
        ('tag:a"b"', '"', "whole value into the quotes"),
        ('"a"b', "b", "A space belongs"),
        ('""', '""', "nothing between"),
        (":dead", ":dead", "in quotes"),
        ("a\x00b", "\x00", "cannot be part"),
        ("a\ud800b", "\ud800", "cannot be part"),
    ],
)
def test_error_points_at_the_place_and_says_what_to_do(text, place, says):
    with pytest.raises(InvalidFilter) as caught:
        parse(text)
    error = caught.value
    assert says in error.problem
    assert text[error.position : error.position + error.length] == place
    assert f"(at character {error.position + 1})" in str(error)
    assert error.pointer.splitlines()[1].index("^") == error.position


def test_error_is_one_of_bad_arguments():
    assert issubclass(InvalidFilter, InvalidArgument)


@pytest.mark.parametrize(
    "text",
    [
        "x" * (syntax.MAX_FILTER_LENGTH + 1),
        "a " * (syntax.MAX_TERMS + 1),
        "queue:" + ",".join("a" * (syntax.MAX_ALTERNATIVES + 1)),
        "args" + ".a" * (syntax.MAX_PATH_SEGMENTS + 1) + ":1",
    ],
)
def test_filter_has_limits(text):
    with pytest.raises(InvalidFilter, match=r"[Aa]t most"):
        parse(text)


# --- properties -----------------------------------------------------------------------------------

NONSENSE = st.text(
    st.one_of(st.sampled_from(' \t"\\-*:<>=,.adegrstu0'), st.characters(codec="utf-8")), max_size=80
)
PLAIN = st.text(
    st.one_of(
        st.sampled_from('ab"\\-*:<>=,. '), st.characters(codec="utf-8", exclude_characters="\x00")
    ),
    min_size=1,
    max_size=20,
)
BARE = st.text(st.sampled_from("ab.:-"), min_size=1, max_size=8)
PATTERNS = st.builds(
    lambda text, sides: Value(text, *sides),
    BARE,
    st.sampled_from([(True, False), (False, True), (True, True)]),
)
NUMBERS = st.integers(-MAX_NUMBER, MAX_NUMBER).map(str)
TIMES = st.one_of(
    st.sampled_from(["now", "-2h", "+30m", "2026-01-01", "2026-01-01T12:30"]),
    st.datetimes(timezones=st.timezones())
    .filter(lambda t: 1971 < t.year < 9999)
    .map(lambda t: t.isoformat(timespec="seconds")[:19] + "Z"),
)


def values_of(name: str) -> st.SearchStrategy[Value]:
    key = KEYS[name]
    if name == "state":
        return st.sampled_from([*map(str, State), *STATE_GROUPS]).map(Value)
    if name in ("id", "copied_from"):
        return st.uuids().map(lambda each: Value(str(each)))
    if name in ("priority", "attempts", "failures"):
        return NUMBERS.map(Value)
    if key.operators != EQUAL:
        return TIMES.map(Value)
    return st.one_of(PLAIN.map(Value), PATTERNS) if key.has_patterns else PLAIN.map(Value)


@st.composite
def terms(draw) -> Term:
    """Draw a term that may be written."""
    is_negated = draw(st.booleans())
    name = draw(st.sampled_from(["", *KEYS]))
    if not name:
        return Term("", (Value(draw(PLAIN)),), is_negated=is_negated)
    operator = draw(st.sampled_from(KEYS[name].operators))
    most = 3 if operator == ":" else 1
    values = tuple(draw(st.lists(values_of(name), min_size=1, max_size=most)))
    segment = PLAIN.filter(lambda text: not set(text) & {'"', "\\"})
    path = tuple(draw(st.lists(segment, min_size=1, max_size=3))) if name == "args" else ()
    return Term(name, values, operator, path, is_negated)


filters = st.lists(terms(), max_size=5).map(lambda found: Filter(tuple(found)))


@given(filters)
def test_what_is_written_reads_as_the_same(chosen):
    assert parse(str(chosen)) == chosen


@given(NONSENSE)
def test_nonsense_is_read_or_refused_at_a_place_within_it(text):
    try:
        found = parse(text)
    except InvalidFilter as error:
        refused = error
    else:
        assert parse(str(found)) == found
        return
    assert 0 <= refused.position <= len(text)
    assert refused.length >= 1
