"""What every scaler has to do, as checks that any of them can run.

A scaler is checked with examples of its author: messages as the codec encodes them, the tag's attributes, and sizes
that they can be scaled to. Run all by `check_all(scaler, examples)`, or one test per entry of `CHECKS`. Invariant: a
check says nothing about what a scaled message looks like, only about what every proxy relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

from ringcast.codec import find
from ringcast.errors import ScaleError
from ringcast.model.tag import TagAttributes
from ringcast.scaling.interface import Scaler, Size

_DAMAGES = 200


class Violation(AssertionError):
    """The scaler does not do what the interface says."""


class Example(msgspec.Struct, frozen=True):
    """A value that the codec of `attributes` can encode, and sizes that its message can be scaled to."""

    attributes: TagAttributes
    value: Any
    sizes: Sequence[Size]

    def payload(self) -> bytes:
        codec = find(self.attributes.codec).bind(self.attributes.schema)
        parts = self.value if codec.encode is None else codec.encode(self.value)
        return b"".join(map(bytes, parts)) if isinstance(parts, tuple) else bytes(parts)


def expect(condition: object, what: str) -> None:
    if not condition:
        raise Violation(what)


def _names_installed_codecs(scaler: Scaler, examples: Sequence[Example]) -> None:
    expect(scaler.name and scaler.codecs, "a scaler has a name and understands at least one codec")
    for codec in scaler.codecs:
        find(codec)
    shown = {example.attributes.codec for example in examples}
    expect(shown == set(scaler.codecs), f"there are examples of {shown}, but it says it understands {scaler.codecs}")


def _scaled_messages_decode(scaler: Scaler, examples: Sequence[Example]) -> None:
    for example, size, scaled in _all(scaler, examples):
        expect(isinstance(scaled, bytes), "what is scaled is bytes")
        schema = scaler.schema(example.attributes.schema, size)
        codec = find(example.attributes.codec).bind(schema)
        if codec.decode is not None:
            codec.decode(scaled)


def _the_same_everywhere(scaler: Scaler, examples: Sequence[Example]) -> None:
    other = type(scaler)()
    for example, size, scaled in _all(scaler, examples):
        payload = example.payload()
        expect(scaler.scale(payload, example.attributes, size) == scaled, "scaling twice gives the same bytes")
        expect(other.scale(payload, example.attributes, size) == scaled, "another instance gives the same bytes")
    backwards = {(id(e), size): scaled for e, size, scaled in reversed(list(_all(scaler, list(reversed(examples)))))}
    for example, size, scaled in _all(scaler, examples):
        expect(backwards[id(example), size] == scaled, "what was scaled before makes no difference")


def _any_buffer(scaler: Scaler, examples: Sequence[Example]) -> None:
    for example, size, scaled in _all(scaler, examples):
        payload = example.payload()
        for kind in (memoryview(payload), bytearray(payload), memoryview(b"x" + payload)[1:]):
            expect(scaler.scale(kind, example.attributes, size) == scaled, f"bytes and {type(kind)} give the same")
        lent = memoryview(bytearray(payload))
        scaler.scale(lent, example.attributes, size)
        lent.release()  # BufferError when it was kept


def _refuses_nonsense(scaler: Scaler, examples: Sequence[Example]) -> None:
    rng = Random(7)
    for example in examples:
        payload = example.payload()
        nonsense = [b"", b"\0" * 64, payload[: len(payload) // 2], payload + b"more"]
        for _ in range(_DAMAGES):
            damaged = bytearray(payload[:4096])
            for _ in range(rng.randint(1, 4)):
                damaged[rng.randrange(min(len(damaged), 32))] = rng.randrange(256)
            nonsense.append(bytes(damaged))
        for one in nonsense:
            try:
                scaler.scale(one, example.attributes, example.sizes[0])
            except ScaleError:
                pass
            except Exception as exc:
                raise Violation(f"damaged bytes raise ScaleError, not {type(exc).__name__}: {exc}") from exc


def _all(scaler: Scaler, examples: Sequence[Example]) -> list[tuple[Example, Size, bytes]]:
    return [
        (example, size, scaler.scale(example.payload(), example.attributes, size))
        for example in examples
        for size in example.sizes
    ]


CHECKS: dict[str, Callable[[Scaler, Sequence[Example]], None]] = {
    "names installed codecs": _names_installed_codecs,
    "scaled messages decode": _scaled_messages_decode,
    "the same everywhere": _the_same_everywhere,
    "any buffer": _any_buffer,
    "refuses nonsense": _refuses_nonsense,
}


def check_all(scaler: Scaler, examples: Sequence[Example]) -> None:
    """Raises Violation."""
    for check in CHECKS.values():
        check(scaler, examples)
