"""Whether a call's arguments fit the task's function, asked where the job is enqueued.

A call that does not fit is a TypeError in the caller, as a plain call's is. The shape of a
function is read from its code object (no annotation is evaluated) and once; a call that fits
costs well under a microsecond, and only one that may not fit is bound the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import CO_VARARGS, CO_VARKEYWORDS, Parameter, Signature
from types import CodeType
from typing import Any, NamedTuple


class _Rest(NamedTuple):
    """What keywords may and must still bring after n positional arguments."""

    accepted: frozenset[str]
    required: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The parameters of a function: all that is needed to judge the usual call at once."""

    signature: Signature
    rests: tuple[_Rest, ...]

    def surely_takes(self, count: int, names: Collection[str]) -> bool:
        """Return True if `count` positional arguments and these keywords fit; False: unsure."""
        if count >= len(self.rests):
            return False
        accepted, required = self.rests[count]
        if not names:
            return not required
        return required.issubset(names) and accepted.issuperset(names)


def check_call(
    function: Callable[..., Any],
    takes_context: bool,
    args: Collection[Any],
    kwargs: Mapping[str, Any],
) -> None:
    """Raise TypeError if calling `function` with these arguments would."""
    shape = _shape(function)
    if shape.surely_takes(len(args) + takes_context, kwargs.keys()):
        return
    context = (None,) if takes_context else ()
    try:
        shape.signature.bind(*context, *args, **kwargs)
    except TypeError as error:
        name = f"{function.__module__}.{function.__qualname__}"
        raise TypeError(f"{name}(): {error}") from None


def bound_arguments(
    function: Callable[..., Any],
    takes_context: bool,
    args: Collection[Any],
    kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what each parameter would be given by a call that fits, defaults included."""
    context = (None,) if takes_context else ()
    bound = _shape(function).signature.bind(*context, *args, **kwargs)
    bound.apply_defaults()
    return {name: bound.arguments[name] for name in parameters_of(function, takes_context)}


def parameters_of(function: Callable[..., Any], takes_context: bool) -> dict[str, Any]:
    """Return the parameters and their defaults, None where there is none; not the context's."""
    found = signature_of(function, takes_context)
    return {p.name: None if p.default is Parameter.empty else p.default for p in found}


def signature_of(function: Callable[..., Any], takes_context: bool) -> list[Parameter]:
    """Return the parameters of what really runs, in order and without hints; not the context's."""
    found = list(_shape(function).signature.parameters.values())
    if takes_context and found[0].kind is not Parameter.VAR_POSITIONAL:
        del found[0]
    return found


@cache
def _shape(function: Any) -> _Shape:
    """Return the shape of what really runs; a decorator's wrapper is not followed.

    A wrapper may add or take arguments of the function it wraps: only its own are known.
    """
    code: CodeType = function.__code__
    names = code.co_varnames[: code.co_argcount]
    only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    defaults = frozenset(names[len(names) - len(function.__defaults__ or ()) :])
    only_defaults = frozenset(function.__kwdefaults__ or ())
    required_only = frozenset(only) - only_defaults
    rests = []
    for count in range(len(names) + 1):
        left = names[count:]
        by_position_only = frozenset(names[: code.co_posonlyargcount]).intersection(left)
        required = (frozenset(left) - defaults) | required_only
        rests.append(_Rest((frozenset(left) - by_position_only) | frozenset(only), required))
    return _Shape(_signature(function, code), tuple(rests))


def _signature(function: Any, code: CodeType) -> Signature:
    """Return the signature without annotations, which may not be evaluable in this process."""
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = iter(code.co_varnames)
    defaults = function.__defaults__ or ()
    parameters = []
    for position in range(count):
        kind = (
            Parameter.POSITIONAL_ONLY
            if position < code.co_posonlyargcount
            else Parameter.POSITIONAL_OR_KEYWORD
        )
        index = position - (count - len(defaults))
        default = defaults[index] if index >= 0 else Parameter.empty
        parameters.append(Parameter(next(names), kind, default=default))
    keyword_defaults = function.__kwdefaults__ or {}
    keywords = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=keyword_defaults.get(name, Parameter.empty))
        for name in (next(names) for _ in range(only))
    ]
    if code.co_flags & CO_VARARGS:
        parameters.append(Parameter(next(names), Parameter.VAR_POSITIONAL))
    parameters += keywords
    if code.co_flags & CO_VARKEYWORDS:
        parameters.append(Parameter(next(names), Parameter.VAR_KEYWORD))
    return Signature(parameters)
