"""A refusal, both halves: an error becomes an answer (`refuse`), and the answer an error again (`refusal`).

Invariant: whatever a socket said, what is raised is an exception of `ringcast.errors`.
"""

from __future__ import annotations

import inspect

from ringcast import errors
from ringcast.control.answers import Refused

_KNOWN: dict[str, type[errors.RingcastError]] = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.RingcastError)
}
_MAX_SHOWN_CHARS = 1000


def refuse(request_id: int, error: errors.RingcastError) -> Refused:
    """Every error keeps its constructor's arguments as attributes of the same names; those are the fields. One that
    says nothing but its sentence has it in `args`, as all exceptions do."""
    parameters = inspect.signature(type(error).__init__).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    fields = {name: _short(getattr(error, name)) for name in names if name != "self"}
    return Refused(id=request_id, error=type(error).__name__, fields=fields)


def refusal(refused: Refused) -> errors.RingcastError:
    """The error that `refused` names, built from its fields; a plain RingcastError when it cannot be."""
    kind = _KNOWN.get(refused.error)
    if kind is not None:
        try:
            fields = {k: tuple(v) if isinstance(v, list) else v for k, v in refused.fields.items()}
            said = fields.pop("args", ())
            return kind(*said if isinstance(said, tuple) else (said,), **fields)
        except TypeError:
            pass
    said = ", ".join(f"{name}={value!r}" for name, value in refused.fields.items())
    return errors.RingcastError(f"the daemon refused: {refused.error} ({said})")


def failed(request_id: int, what: str) -> Refused:
    """The answer to a request that we could not do by an error of our own."""
    return refuse(
        request_id, errors.RingcastError(f"the daemon failed to do {what}, by an error of its own; its log says why")
    )


def _short(value: object) -> object:
    """A schema may nearly fill a packet, and a conflict names two of them."""
    text = repr(value)
    return value if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "..."
