"""Policies over plain messages, with the time as an argument."""

from __future__ import annotations

import numpy as np

from ringcast.codec.arrays import NUMPY
from ringcast.model.policy import EveryCycle, OnChange, Periodic, Policy
from ringcast.views.plain import NEVER, PlainView

MS = 1_000_000
T0 = 1_700_000_000_000 * MS


def told(view: PlainView, at_ms: int) -> list[tuple[bytes, bool]]:
    return [(sample.payload, sample.repeated) for sample in view.poll(T0 + at_ms * MS)]


def begun(policy: Policy, codec: str = "bytes") -> PlainView:
    view = PlainView(policy, codec)
    assert view.wake_at_ns == NEVER
    assert told(view, 0) == []
    return view


def test_every_message_passes() -> None:
    view = begun(EveryCycle())
    view.feed(b"a", 1)
    view.feed(b"b", 2)
    assert told(view, 0) == [(b"a", False), (b"b", False)]
    assert told(view, 1) == []


def test_periodic_repeats_and_marks_on_a_fixed_grid() -> None:
    view = begun(Periodic(0.01))
    view.feed(b"a", 1)
    view.feed(b"b", 2)
    assert told(view, 3) == [(b"b", False)]
    assert view.wake_at_ns == T0 + 10 * MS
    assert told(view, 9) == []
    assert told(view, 17) == [(b"b", True)]
    assert view.wake_at_ns == T0 + 20 * MS, "a late look does not shift the next one"


def test_on_change_by_value_and_by_time() -> None:
    by_value = begun(OnChange(by="value"))
    either = begun(OnChange())
    for view, expected in ((by_value, [1, 0, 1]), (either, [1, 1, 1])):
        found = []
        for number, word in enumerate((b"a", b"a", b"b")):
            view.feed(word, number)
            found.append(len(told(view, number)))
        assert found == expected


def test_separation_and_silence() -> None:
    view = begun(OnChange(by="value", least_s=0.01, longest_s=0.05))
    view.feed(b"a", 1)
    assert told(view, 0) == [(b"a", False)]
    view.feed(b"b", 2)
    assert told(view, 5) == []
    assert view.wake_at_ns == T0 + 10 * MS
    assert told(view, 10) == [(b"b", False)]
    assert view.wake_at_ns == T0 + 60 * MS
    assert told(view, 60) == [(b"b", True)]


def test_dead_band_of_arrays() -> None:
    view = begun(OnChange(dead_band=0.5), "numpy")
    encode = NUMPY.bind(None).encode
    assert encode is not None
    found = []
    for value in (0.0, 0.4, 0.6, 0.7, float("nan"), float("nan")):
        parts = encode(np.array([1.0, value]))
        view.feed(b"".join(bytes(part) for part in parts) if isinstance(parts, tuple) else bytes(parts), 1)
        found.append(len(told(view, len(found))))
    assert found == [1, 0, 1, 0, 1, 0]
