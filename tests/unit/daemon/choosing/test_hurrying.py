"""When a line changes, the keeper does not wait until its next look is due."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from choosers import model

from ringcast.adapt.foretelling import more_packets
from ringcast.control.between.choosing import AllHeard, AskHeard, Counted, Heard
from ringcast.daemon.background import Background
from ringcast.daemon.choosing import chooser
from ringcast.daemon.choosing.asking import (
    ASKED_AT_ONCE,
    ASKED_BYTES,
    ASKED_SHARE,
    LONGEST_PERIOD_S,
    PERIOD_S,
    apart,
    period_s,
)
from ringcast.daemon.choosing.chooser import HURRIED_S, SOON_S, Choosing
from ringcast.daemon.choosing.ways import Collected, Known
from ringcast.daemon.choosing.wishes import wishes_of
from ringcast.daemon.table.rows import Row, SubscriberRow, TagRow
from ringcast.model.carrier import Chosen
from ringcast.model.identity import SubscriberInfo
from ringcast.model.place import Setting, Wanted
from ringcast.model.tag import TagAttributes

NOW_S = 100.0


def after(script: Callable[[Choosing], None]) -> float | None:
    """How long after a script the next look is due; None where none is."""

    async def live() -> float | None:
        asyncio.get_running_loop().time = lambda: NOW_S  # type: ignore[method-assign]
        mesh, local = SimpleNamespace(serve=lambda *about: None), SimpleNamespace(table=None)
        nothing: Any = None
        choosing = Choosing(
            cast(Any, local), cast(Any, mesh), nothing, nothing, lambda: 0, lambda sends: None, lambda: None, nothing
        )
        script(choosing)
        timer = choosing._alarm._timer
        choosing._looking = None
        choosing.close()
        return None if timer is None else timer.when() - NOW_S

    return asyncio.run(live())


def test_a_look_that_is_due_later_comes_soon_but_not_just_after_another() -> None:
    def looked(choosing: Choosing) -> None:
        choosing._asked = True
        choosing._done()

    def changed(choosing: Choosing) -> None:
        looked(choosing)
        choosing.line_changed()

    def long_ago(choosing: Choosing) -> None:
        choosing._alarm.within(PERIOD_S)
        choosing.line_changed()

    def nobody_asked(choosing: Choosing) -> None:
        choosing._due_s = NOW_S - 0.001  # it became due while the line was looked at
        choosing._done()

    assert after(looked) == PERIOD_S
    assert after(nobody_asked) == pytest.approx(SOON_S)
    assert after(changed) == pytest.approx(HURRIED_S)
    assert after(long_ago) == pytest.approx(SOON_S)


def test_a_change_during_a_look_brings_another_one_and_then_all_is_as_usual() -> None:
    def during(choosing: Choosing) -> None:
        choosing._looking, choosing._asked = cast(Any, object()), True
        choosing.line_changed()
        choosing._done()

    def twice(choosing: Choosing) -> None:
        during(choosing)
        choosing._alarm._timer, choosing._asked = None, True
        choosing._done()

    assert after(during) == pytest.approx(HURRIED_S)
    assert after(twice) == PERIOD_S


def test_a_thin_line_is_asked_through_less_often() -> None:
    assert period_s(8, 0.0) == PERIOD_S, "nobody told how fast it is"
    assert period_s(8, 1e9 / 8) == PERIOD_S
    assert period_s(0, 1000.0) == PERIOD_S, "nobody else is asked"
    assert period_s(2, 2 * ASKED_BYTES / (3 * ASKED_SHARE)) == pytest.approx(3.0)
    assert period_s(8, 125_000.0) == pytest.approx(8 * ASKED_BYTES / (ASKED_SHARE * 125_000.0))
    assert period_s(50, 125_000.0) == LONGEST_PERIOD_S


def test_through_a_thin_line_nodes_are_asked_one_after_the_other() -> None:
    assert apart(8, 0.0) == 0.0, "nobody told how fast it is"
    assert apart(8, 125_000.0) == pytest.approx(ASKED_BYTES / (ASKED_AT_ONCE * 125_000.0))
    assert 50 * apart(50, 1_000.0) == pytest.approx(PERIOD_S / 2), "all in half of a look"


def test_where_nobody_leaves_a_transport_to_this_node_nothing_runs() -> None:
    assert after(lambda choosing: choosing.line_changed()) is None


class Lines:
    """A keeper that sends as well, by a line that has become thin. Other nodes' answers never come: they would come
    through the full queue."""

    def __init__(self, model: Any = None, leaves: float = 0.0) -> None:
        self.put: list[str] = []
        self.asked: list[str] = []
        self._model = model
        self._set: dict[str, Setting] = {}
        self._leaves = leaves
        self._rate = 125_000.0
        self._row = TagRow(
            name="t", attributes=TagAttributes(transport="auto:relate2"), primary="a",
            chosen={"auto:relate2": Chosen("multicast+parity:r=4,c=3")},
        )  # fmt: skip

    def judged(self) -> list[str]:
        """What was written into the row, one after the other."""
        asyncio.run(self._live(self._judge))
        return self.put

    def asked_between_looks(self) -> list[str]:
        """Which nodes are asked a second after a look in which little left by the line, and long before the next."""
        asyncio.run(self._live(self._glance))
        return self.asked

    async def _judge(self, choosing: Choosing) -> None:
        choosing.line_changed()
        assert choosing._judging is not None
        await choosing._judging

    async def _glance(self, choosing: Choosing) -> None:
        choosing._due_s = choosing._loop.time() + LONGEST_PERIOD_S
        choosing._begin()
        assert choosing._looking is not None
        await choosing._looking

    def asked_after_a_setting(self) -> list[str]:
        """The same where an administrator set something since that look."""
        self._set = {"b": Setting(transport="auto:p99")}
        asyncio.run(self._live(self._glance))
        return self.asked

    def roomy(self) -> None:
        """Judged five times, and nothing is measured."""
        self._row = msgspec.structs.replace(self._row, chosen={"auto:relate2": Chosen("multicast+parity:r=4,c=3")})
        self._rate = 1.25e8

        async def often(choosing: Choosing) -> None:
            for _ in range(5):
                await self._judge(choosing)
                await asyncio.sleep(0)

        asyncio.run(self._live(often))

    def judged_while_it_waits(self) -> list[str]:
        """As `judged`, where the line changes again while what was taken in haste waits for the queue."""
        asyncio.run(self._live(self._judge_twice))
        return self.put

    async def _judge_twice(self, choosing: Choosing) -> None:
        choosing.line_changed()
        assert choosing._judging is not None
        while not self.put:
            await asyncio.sleep(0)
        self._model = model(["multicast"], [0.0])
        choosing.line_changed()
        await choosing._judging

    async def _request(self, node: str, *_: object) -> bytes:
        self.asked.append(node)
        raise TimeoutError

    def _chosen_as(self, _: TagRow, chosen: dict[str, Chosen]) -> list[Any]:
        self.put += [one.transport for one in chosen.values()]
        self._row = msgspec.structs.replace(self._row, chosen=chosen)
        return []

    async def _heard(self, asked: AskHeard) -> AllHeard:
        return AllHeard(tags={name: Heard("a", [], line=self._rate, leaves=self._leaves) for name in asked.tags})

    async def _live(self, script: Callable[[Choosing], Awaitable[None]]) -> None:
        subscriber = SubscriberRow(info=SubscriberInfo(id=1, node="b", pattern="t", pid=1, user="u"), wanted=Wanted())
        table = SimpleNamespace(
            node="a", tags=lambda: [self._row], tag=lambda name: self._row, publishers=lambda name: [],
            subscribers=lambda name: [subscriber],
        )  # fmt: skip
        local = SimpleNamespace(table=table, tags=SimpleNamespace(put_chosen=self._chosen_as))
        choosing = Choosing(
            cast(Any, local), cast(Any, SimpleNamespace(serve=lambda *about: None, request=self._request)),
            cast(Any, SimpleNamespace(told=lambda *about: None, heard=self._heard)),
            cast(Any, SimpleNamespace(of=lambda metric, ordered: self._model)),
            lambda: 0, lambda sends: None, lambda: None, Background(),
        )  # fmt: skip
        known, asked = choosing._tags.setdefault("t", Known()), wishes_of(self._row, [subscriber])
        choosing._mine_then = {"t": asked}
        for second in range(6):  # 100 messages a second of 400 bytes, a few of which get lost
            came = 100 * second
            counted = Counted(1, "multicast+parity:r=4,c=3", came, 400 * came, 0, skipped=second, gaps=second)
            sender = Heard("a", [], line=125_000.0, leaves=40_000.0)
            heard = Collected([sender, Heard("b", [counted], 0.001, 125e6)], {}, set())
            known.look(heard, asked, float(second))
        self._row = msgspec.structs.replace(self._row, settings=self._set)
        await script(choosing)
        choosing.close()


def test_what_fits_a_line_no_longer_is_judged_without_asking_other_nodes() -> None:
    (put,) = Lines().judged()
    assert more_packets(put) < more_packets("multicast+parity:r=4,c=3")


def test_what_was_taken_in_haste_is_judged_again_without_asking_when_the_queue_is_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chooser, "RELIEVED_S", 0.0)
    known = model(["parity:r=4,c=3", "parity:r=4,c=2,flush=1s", "multicast"], [0.0, 2.0, 1.0])
    assert Lines(known).judged() == ["multicast+parity:r=4,c=2,flush=1s", "multicast"]


def test_between_looks_through_a_thin_line_others_are_asked_only_when_it_fills() -> None:
    assert Lines(leaves=40_000.0).asked_between_looks() == []
    assert Lines(leaves=110_000.0).asked_between_looks() == ["b"]


def test_a_new_setting_is_looked_at_although_the_next_look_is_not_due() -> None:
    assert Lines(leaves=40_000.0).asked_after_a_setting() == ["b"]


def test_a_line_that_changes_again_is_judged_at_once() -> None:
    known = model(["parity:r=4,c=3", "parity:r=4,c=2,flush=1s", "nak"], [0.0, 2.0, 1.0])
    assert Lines(known).judged_while_it_waits()[:2] == ["multicast+parity:r=4,c=2,flush=1s", "multicast"]


def test_what_only_the_line_says_is_no_second_look() -> None:
    """A judgement of a line that has room again and again: `nak` seems better each time, and nothing new came."""
    known = model(["parity:r=4,c=3", "nak"], [1.0, 0.0])
    lines = Lines(known)
    lines.roomy()
    assert lines.put == []


def subscribed(node: str = "b") -> SubscriberRow:
    return SubscriberRow(info=SubscriberInfo(id=1, node=node, pattern="t", pid=1, user="u"))


def test_who_subscribes_later_to_what_is_left_to_the_mesh_is_looked_at_soon() -> None:
    left = TagRow(name="t", attributes=TagAttributes(transport="auto:relate2"), primary="a")
    plain = TagRow(name="u", attributes=TagAttributes(), primary="a")
    elsewhere = TagRow(name="t", attributes=TagAttributes(), primary="b")

    def script(*rows: Row, then: Row | None = None) -> Callable[[Choosing], None]:
        def run(choosing: Choosing) -> None:
            tags = {row.name: row for row in (*rows, then) if isinstance(row, TagRow)}
            others = [row for row in rows if isinstance(row, SubscriberRow)]
            choosing._local = cast(Any, SimpleNamespace(table=SimpleNamespace(
                node="a", tag=tags.get, tags=lambda: list(tags.values()), subscribers=lambda name: [],
                all_subscribers=lambda: others,
            )))  # fmt: skip
            choosing.changed([(None, row) for row in rows])
            choosing._alarm._timer = None
            choosing._begin()  # there are no subscribers yet, so nothing is chosen
            if then is not None:
                choosing.changed([(None, then)])

        return run

    wild = msgspec.structs.replace(subscribed(), wanted=Wanted(transport="auto:relate2"))
    assert after(script(left)) is None
    assert after(script(left, then=subscribed())) == PERIOD_S
    assert after(script(wild, then=plain)) == PERIOD_S, "of a tag that was not there yet"
    assert after(script(plain, then=subscribed())) is None
    assert after(script(wild, elsewhere, then=subscribed())) is None, "another node chooses"
