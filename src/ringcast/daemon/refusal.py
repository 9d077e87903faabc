"""An error of this process as an answer that a client raises again (`ringcast.control.refusal` is the client's half)."""

from __future__ import annotations

import inspect

from ringcast.control.messages import Refused
from ringcast.errors import RingcastError

_MAX_SHOWN_CHARS = 1000


def refuse(request_id: int, error: RingcastError) -> Refused:
    """Every error keeps its constructor's arguments as attributes of the same names; those are the fields. One that
    says nothing but its sentence has it in `args`, as all exceptions do."""
    parameters = inspect.signature(type(error).__init__).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    fields = {name: _short(getattr(error, name)) for name in names if name != "self"}
    return Refused(id=request_id, error=type(error).__name__, fields=fields)


def failed(request_id: int, what: str) -> Refused:
    """The answer to a request that we could not do by an error of our own."""
    return refuse(
        request_id, RingcastError(f"the daemon failed to do {what}, by an error of its own; its log says why")
    )


def _short(value: object) -> object:
    """A schema may nearly fill a packet, and a conflict names two of them."""
    text = repr(value)
    return value if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "..."
