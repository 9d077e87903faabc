"""A daemon's refusal as an exception of ringcast.errors, and of nothing else: the name came off a socket."""

from __future__ import annotations

from ringcast import errors
from ringcast.control.messages import Refused

_KNOWN: dict[str, type[errors.RingcastError]] = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.RingcastError) and value.__module__ == errors.__name__
}


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
