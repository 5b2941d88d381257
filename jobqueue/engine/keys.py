"""The unique key of a job: given, or made of its arguments. Nothing here touches a database.

Arguments are compared as the job will see them, by parameter: ``f(1)``, ``f(a=1)`` and a call that
leaves out a default are the same. As JSON: 1, 1.0, True and "1" are four values, and the order of
a dict's keys does not count. Only their hash is stored, so that a key tells nobody the arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from typing import Any

from jobqueue.compat import InvalidTask
from jobqueue.engine.arguments import bound_arguments, parameters_of
from jobqueue.exceptions import InvalidArgument, InvalidUniqueKey, UnsupportedType
from jobqueue.payload import canonical, decode_arguments, storable_text
from jobqueue.unique import Unique, stored_key


def checked_key(key: Any) -> str:
    """Return a key that somebody gave, as it is stored. Raise InvalidUniqueKey if it is none."""
    if not isinstance(key, str) or not key:
        raise InvalidUniqueKey(f"A unique key is text of at least one character, not {key!r}.")
    if storable_text(key, 4 * len(key)) != key:
        raise InvalidUniqueKey(
            f"The unique key {key!r:.200} holds a NUL character or a lone surrogate, which a "
            "database cannot store."
        )
    return stored_key(key)


def check_unique(unique: Unique, function: Callable[..., Any], takes_context: bool) -> None:
    """Raise InvalidTask unless a key can be made of any call of `function`."""
    if callable(unique.key):
        return
    known = parameters_of(function, takes_context)
    names = known if unique.key is True else unique.key
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidTask(
            f"unique names {', '.join(unknown)}, which {function.__qualname__}() does not take; "
            f"its parameters are {', '.join(known) or 'none'}."
        )
    for name in names:
        try:
            canonical({name: known[name]})
        except (UnsupportedType, InvalidArgument) as error:
            raise InvalidTask(
                f"A default of {function.__qualname__}() cannot be part of a unique key: {error}"
            ) from None


def key_of(
    unique: Unique, function: Callable[..., Any], takes_context: bool, arguments: str
) -> str | None:
    """Return the stored key of a call with these encoded arguments, None if it is not unique.

    Raise InvalidUniqueKey for what a callable returned; its own exceptions pass.
    """
    args, kwargs = decode_arguments(arguments)
    if callable(unique.key):
        given = unique.key(*args, **kwargs)
        return None if given is None else checked_key(given)
    values = bound_arguments(function, takes_context, args, kwargs)
    names: Collection[str] = values if unique.key is True else unique.key
    text = canonical({name: values[name] for name in names})
    return "arguments:" + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
