"""Policies in the core: what a proxy lets through, with the time as an argument."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from variables_model import NAMES, Model, agrees

from ringcast import _core

MS = 1_000_000
T0 = 1_700_000_000_000 * MS


class Bench:
    """An owner, a proxy and a reader."""

    def __init__(self, patterns: list[str], **policy: object) -> None:
        self.owner = Model()
        self.view = _core.VariableView(patterns, frame_s=3600.0, **policy)  # type: ignore[arg-type]
        self.reader = _core.VariableTable()
        self.now = T0
        self.view.poll(self.now, True)

    def feed(self, full: bool = False) -> None:
        self.view.feed(self.owner.packet(full))

    def told(self, full: bool = False) -> list[tuple[str, object, bool]]:
        """(name, value, repeated) of what the reader is told now."""
        indices, how, bad = self.reader.apply(self.view.poll(self.now, full))
        assert bad == 0
        marks = [bool(mark & _core.HOW_REPEATED) for mark in how.tolist()]
        names = [self.reader.name(index) or "" for index in indices.tolist()]
        return list(zip(names, self.reader.values_at(indices), marks, strict=True))


def test_every_cycle_selects_and_passes_on() -> None:
    bench = Bench(["engine/*"], mode="every_cycle")
    for name in ("engine/rpm0", "brake/t1"):
        bench.owner.put(name, 1.0, 1)
    bench.feed()
    assert bench.told() == [("engine/rpm0", 1.0, False)]
    bench.owner.put("brake/t1", 2.0, 2)
    bench.feed()
    assert bench.told() == []
    bench.owner.put("engine/rpm0", 2.0, 3)
    bench.feed()
    assert bench.told() == [("engine/rpm0", 2.0, False)]


def test_periodic_has_the_newest_value_on_a_fixed_grid_and_marks_repeats() -> None:
    bench = Bench(["**"], mode="periodic", period_s=0.1)
    slots = []
    for step in range(1, 60):  # 7 ms do not divide 100
        bench.now = T0 + step * 7 * MS
        bench.owner.put("engine/rpm0", float(step), bench.now)
        bench.feed()
        if told := bench.told():
            slots.append(bench.now)
            assert told == [("engine/rpm0", float(step), False)], "the newest"
    offsets = [slot % (100 * MS) for slot in slots]
    assert len(slots) in (4, 5, 6)
    assert all(offset < 7 * MS for offset in offsets[1:]), "no drift"
    bench.now += 200 * MS
    assert bench.told() == [("engine/rpm0", 59.0, False)] or bench.told() == []
    bench.now += 100 * MS
    assert bench.told() == [("engine/rpm0", 59.0, True)], "nothing new came"


def test_on_change_leaves_out_what_did_not_change() -> None:
    bench = Bench(["**"], mode="on_change", by_value=True)
    bench.owner.put("v", 1.0, 1)
    bench.feed()
    assert bench.told() == [("v", 1.0, False)]
    bench.owner.put("v", 1.0, 2)
    bench.feed()
    assert bench.told() == [], "only the time is another"
    bench.owner.put("v", math.nan, 3)
    bench.feed()
    assert len(bench.told()) == 1
    bench.owner.put("v", math.nan, 4)
    bench.feed()
    assert bench.told() == [], "NaN stays NaN"


def test_a_new_time_is_a_change_unless_only_values_count() -> None:
    bench = Bench(["**"], mode="on_change")
    for time_ns in (1, 2):
        bench.owner.put("v", 1.0, time_ns)
        bench.feed()
        assert len(bench.told()) == 1


def test_dead_band_is_measured_from_what_was_sent_and_full_packets_keep_to_it() -> None:
    bench = Bench(["**"], mode="on_change", dead_band=1.0)
    steps = ((0.0, True), (0.6, False), (1.0, False), (1.1, True), (0.2, False), (math.nan, True), (5.0, True))
    for value, passes in steps:
        bench.owner.put("v", value, int(bench.now))
        bench.feed()
        bench.now += MS
        known = bench.reader.get("v")
        assert bool(bench.told()) == passes, value
        assert bench.told(full=True) == [], "a full packet repeats what was sent"
        assert passes or bench.reader.get("v") == known


def test_least_separation_sends_the_newest_later() -> None:
    bench = Bench(["**"], mode="on_change", least_s=0.01)
    bench.owner.put("v", 1.0, 1)
    bench.feed()
    assert len(bench.told()) == 1
    for value in (2.0, 3.0):
        bench.now += MS
        bench.owner.put("v", value, bench.now)
        bench.feed()
        assert bench.told() == []
    assert bench.view.wake_at_ns == T0 + 10 * MS
    bench.now = T0 + 10 * MS
    assert bench.told() == [("v", 3.0, False)]


def test_longest_silence_repeats_and_marks() -> None:
    bench = Bench(["**"], mode="on_change", longest_s=0.05)
    bench.owner.put("v", 1.0, 1)
    bench.feed()
    assert len(bench.told()) == 1
    assert bench.view.wake_at_ns == T0 + 50 * MS
    bench.now += 49 * MS
    assert bench.told() == []
    bench.now += MS
    assert bench.told() == [("v", 1.0, True)]


def test_removed_variables_leave_the_view() -> None:
    bench = Bench(["**"], mode="periodic", period_s=0.1)
    bench.owner.put("v", 1.0, 1)
    bench.feed()
    bench.now += 100 * MS
    bench.told()
    bench.owner.remove("v")
    bench.feed()
    bench.now += 100 * MS
    bench.told()
    assert bench.reader.names() == []


@settings(max_examples=80, deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from(NAMES), st.floats(-10, 10), st.booleans(), st.booleans()), max_size=60),
    mode=st.sampled_from(["every_cycle", "on_change", "periodic"]),
)
def test_whatever_is_lost_a_reader_of_a_view_is_right_after_full_packets(
    steps: list[tuple[str, float, bool, bool]], mode: str
) -> None:
    bench = Bench(["engine/**"], mode=mode, period_s=0.001 if mode == "periodic" else 0.0)
    for name, value, to_view, to_reader in steps:
        bench.now += MS
        bench.owner.put(name, value, bench.now)
        chunks = bench.owner.packet(False)
        if to_view:
            bench.view.feed(chunks)
        sent = bench.view.poll(bench.now)
        if to_reader:
            bench.reader.apply(sent)
    bench.now += 2 * MS
    bench.feed(full=True)
    bench.told(full=True)
    expected = {name: held for name, held in bench.owner.values.items() if name.startswith("engine/")}
    agrees(bench.reader, expected)


def test_a_view_hands_on_its_own_nodes_times() -> None:
    bench = Bench(["**"], mode="on_change")
    bench.owner.put("engine/rpm0", 1.0, 5_000)
    chunks = bench.owner.packet(full=True)
    bench.view.feed(chunks, [5_000 + 70] * len(chunks))
    assert bench.told(full=True) == [("engine/rpm0", 1.0, False)]
    assert bench.view.newest_ns == 5_070
    agrees(bench.reader, {"engine/rpm0": (1.0, 5_070)})
    # Its clock is believed to be elsewhere now: that is no change.
    again = bench.owner.packet(full=True)
    bench.view.feed(again, [5_000 + 90] * len(again))
    assert bench.told() == []


def test_a_full_packet_comes_before_the_frame_ends() -> None:
    """A fifth of the frame is left to repair what is lost of it."""
    owner = Model()
    owner.put("engine/rpm0", 1.0, T0)
    view = _core.VariableView(["**"], mode="on_change", frame_s=1.0)
    view.feed(owner.packet(True))
    assert view.poll(T0, True)
    assert view.wake_at_ns == T0 + 800 * MS
    assert view.poll(T0 + 799 * MS) == []
    reader = _core.VariableTable()
    reader.apply(view.poll(T0 + 800 * MS))
    agrees(reader, {"engine/rpm0": (1.0, T0)})
