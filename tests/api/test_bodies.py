"""Bodies: what is refused before anybody looks at what it says."""

import json

import pytest

from jobqueue.api.parsing import read_json
from jobqueue.api.problems import Problem


def refused(raw: bytes, depth: int = 8) -> Problem:
    with pytest.raises(Problem) as caught:
        read_json(raw, depth)
    assert caught.value.kind.code == "malformed-body"
    return caught.value


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "not JSON"),
        (b"[]", "must be a JSON object"),
        (b"7", "must be a JSON object"),
        (b'{"a": NaN}', "NaN is no JSON"),
        (b'{"a": -Infinity}', "-Infinity is no JSON"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' twice"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'\xef\xbb\xbf{"a": 1}', "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b'{"a": 1} {}', "not JSON"),
        (b"[" * 100_000, "levels deep"),
        (b'{"a":' * 100_000, "levels deep"),
        (b'{"a": [[[[[[[[1]]]]]]]]}', "levels deep"),
    ],
)
def test_what_is_not_one_json_object_is_refused(raw, says):
    assert says in refused(raw).detail


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"a": "x\x00"}, "/a"),
        ({"a": [1, {"b/c": "\ud800"}]}, "/a/1/b~1c"),
        ({"\x00": 1}, ""),
        ({"a": {"\udfff": 1}}, "/a"),
    ],
)
def test_text_that_cannot_be_stored_is_pointed_at(document, pointer):
    (error,) = refused(json.dumps(document).encode()).errors
    assert error.pointer == pointer


@pytest.mark.parametrize("document", [{}, {"a": [[[[[[[1]]]]]]]}, {"é": "☃", "n": 10**300}])
def test_what_is_one_is_read(document):
    assert read_json(json.dumps(document, ensure_ascii=False).encode(), 8) == document
