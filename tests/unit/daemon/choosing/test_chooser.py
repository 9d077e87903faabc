"""Whom a choice is for, by what these nodes meet alone, and what an administrator pins."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from choosers import model

from ringcast.control import service
from ringcast.control.between.choosing import AllHeard, AskHeard, Counted, Heard, Lived
from ringcast.daemon.background import Background
from ringcast.daemon.choosing.chooser import Choosing
from ringcast.daemon.table.rows import SubscriberRow, TagRow
from ringcast.model.carrier import Chosen
from ringcast.model.identity import SubscriberInfo
from ringcast.model.place import Setting
from ringcast.model.tag import TagAttributes

LABELS, COSTS = ["nak", "multicast+nak"], [2.0, 1.0]


class Keeper:
    """Node a keeps a tag and sends it. Node b gets all of it, and node c loses a fifth."""

    def __init__(self, **settings: str) -> None:
        self.row = TagRow(name="t", attributes=TagAttributes(transport="auto:relate2"), primary="a")
        self.told: list[Lived] = []
        self.writes = 0
        self._seconds = 0
        self.set(**settings)

    def set(self, **settings: str) -> None:
        """For `all`, or for a node."""
        of = {"" if name == "all" else name: Setting(transport=text) for name, text in settings.items()}
        self.row = msgspec.structs.replace(self.row, settings=of)

    def _put(self, _: TagRow, chosen: dict[str, Chosen]) -> list[Any]:
        self.writes += 1
        self.row = msgspec.structs.replace(self.row, chosen=chosen)
        return []

    def _counts(self, node: str) -> Heard:
        sent = 100 * self._seconds
        lost = sent // 5 if node == "c" else 0
        return Heard(node, [Counted(1, "nak", sent, 100 * sent, 0, skipped=lost, gaps=lost)], 0.001, 1.25e8)

    async def _request(self, node: str, _: str, payload: bytes, timeout_s: float) -> bytes:
        tags = service.decode_untrusted(payload, AskHeard).tags
        return service.encode(AllHeard(tags=dict.fromkeys(tags, self._counts(node))))

    async def _here(self, asked: AskHeard) -> AllHeard:
        return AllHeard(tags={})

    async def _follow(self, *_: object) -> None: ...

    async def _live(self, seconds: int) -> dict[str, str]:
        asyncio.get_running_loop().time = lambda: float(self._seconds)  # type: ignore[method-assign]
        rows = [
            SubscriberRow(info=SubscriberInfo(id=n, node=node, pattern="t", pid=1, user="u"))
            for n, node in enumerate("bc", 1)
        ]
        table = SimpleNamespace(
            node="a", tags=lambda: [self.row], tag=lambda name: self.row, publishers=lambda name: [],
            subscribers=lambda name: rows if name == "t" else [],
        )  # fmt: skip
        models = SimpleNamespace(of=lambda metric, ordered: model(LABELS, COSTS), follow=self._follow)
        choosing = Choosing(
            cast(Any, SimpleNamespace(table=table, tags=SimpleNamespace(put_chosen=self._put))),
            cast(Any, SimpleNamespace(serve=lambda *about: None, request=self._request)),
            cast(Any, SimpleNamespace(told=lambda *about: None, heard=self._here)), cast(Any, models),
            lambda: self._seconds * 10**9, lambda sends: None, lambda: None, Background(), self.told.append,
        )  # fmt: skip
        for _ in range(seconds):
            self._seconds += 1
            await choosing.look(dict(choosing._mine()))
        losses = {one.asked: one.environment.partition(",")[2] for one in choosing.explained("t")}
        choosing.close()
        return losses

    def explained(self, seconds: int = 5) -> dict[str, str]:
        """What was met, by what was asked for, after so many looks."""
        return asyncio.run(self._live(seconds))


def test_a_node_with_a_setting_of_its_own_is_chosen_for_by_what_it_alone_meets() -> None:
    keeper = Keeper(c="auto:p99")
    met = keeper.explained()
    assert met["auto:relate2"].startswith(" 0 % loss")
    assert met["auto:p99 to c"].startswith(" 20 % loss")
    assert {key: one.transport for key, one in keeper.row.chosen.items()} == {
        "auto:relate2": "multicast+nak",
        "auto:p99 to c": "udp",
    }, "20 % is beyond what the model learned from, so the rule chooses"


def test_both_together_meet_the_mean() -> None:
    assert Keeper().explained()["auto:relate2"].startswith(" 10 % loss")


def test_while_a_transport_is_pinned_nothing_is_chosen_and_the_row_says_so() -> None:
    keeper = Keeper(all="ack")
    keeper.explained()
    (pinned,) = keeper.row.chosen.values()
    assert (pinned.transport, pinned.pinned) == ("", "ack")
    assert keeper.writes == 1
    keeper.set()
    keeper.explained()
    (chosen,) = keeper.row.chosen.values()
    assert (chosen.transport, chosen.pinned) == ("multicast+nak", "")
    keeper.set(all="ack")
    keeper.explained()
    (again,) = keeper.row.chosen.values()
    assert again == msgspec.structs.replace(chosen, pinned="ack"), "what was chosen is remembered"


def test_what_was_lived_through_is_told_once_for_those_who_receive_the_same() -> None:
    keeper = Keeper(c="auto:p99")
    keeper.explained(seconds=3)
    assert [(one.asked, one.messages) for one in keeper.told[-2:]] == [("auto:relate2", 100), ("auto:p99 to c", 100)]
