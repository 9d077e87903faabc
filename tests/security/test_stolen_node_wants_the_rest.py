"""A node whose certificate is good asks for what the rules do not give it: a stolen one reads its own part only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from addresses import free_addresses
from outsiders import RuledNode

import ringcast
from ringcast.control import service
from ringcast.control.peering import Failure
from ringcast.testing.waiting import PATIENCE_S

RULES = """
[[rules]]
node = "camera"
may = ["publish", "subscribe", "pull"]
tags = ["camera/**"]
"""


class Pair:
    """`base` has rules for nodes, `camera` is another node with none."""

    def __init__(self, rules: str = RULES) -> None:
        here, there = free_addresses(2)
        self.address = here
        self.base = RuledNode(rules, "--name", "base", "--listen", here, "--no-scout", "--identity", "none")
        self.camera = RuledNode(
            "", "--name", "camera", "--listen", there, "--peer", here, "--no-scout", "--identity", "none"
        )  # fmt: skip

    def close(self) -> None:
        self.camera.close()
        self.base.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def refusals(session: ringcast.Session) -> int:
    return session.dropped().get("mesh", {}).get("node without a right", 0)


def test_it_receives_and_pulls_its_own_part_only(pair: Pair, eventually: Callable[..., None]) -> None:
    base, camera = pair.base.session(), pair.camera.session()
    secret, shared = base.tag("secret").publisher(), base.tag("camera/aim").publisher()
    eventually(lambda: len(camera.tags("**")) == 2)
    reading, spying = camera.subscribe("camera/aim", start="earliest"), camera.subscribe("secret", start="earliest")
    shared.send(b"up")
    secret.send(b"money")
    assert bytes(reading.recv(PATIENCE_S).data) == b"up"
    eventually(lambda: refusals(base) > 0)
    with pytest.raises(TimeoutError):
        spying.recv(0)
    with pytest.raises(ringcast.NotAllowed, match=r'node = "camera", may = \["pull"\], tags = \["secret"\]'):
        camera.tag("secret").history(at="publisher").latest()
    assert bytes(camera.tag("camera/aim").history(at="publisher").latest().data) == b"up"
    with pytest.raises(ringcast.NotAllowed, match="destroy"):
        camera.tag("secret").destroy(force=True)
    assert any(line.count('"kind":"node"') for line in pair.base.audit.read_text().splitlines())


def test_what_it_publishes_elsewhere_is_not_believed(pair: Pair, eventually: Callable[..., None]) -> None:
    base, camera = pair.base.session(), pair.camera.session()
    reading = base.subscribe("**", start="earliest")
    forged, own = camera.tag("orders").publisher(), camera.tag("camera/picture").publisher()
    forged.send(b"fire")
    own.send(b"tree")
    assert bytes(reading.recv(PATIENCE_S).data) == b"tree"
    with pytest.raises(TimeoutError):
        reading.recv(0)
    assert [row.name for row in base.tags("**")] == ["camera/picture"]
    assert base.dropped()["mesh"]["row without a right"] > 0


def test_new_rules_end_its_streams_and_begin_others(pair: Pair, eventually: Callable[..., None]) -> None:
    base, camera = pair.base.session(), pair.camera.session()
    shared, secret = base.tag("camera/aim").publisher(), base.tag("secret").publisher()
    eventually(lambda: len(camera.tags("**")) == 2)
    reading, waiting = camera.subscribe("camera/aim"), camera.subscribe("secret", start="earliest")
    shared.send(b"up")
    assert bytes(reading.recv(PATIENCE_S).data) == b"up"
    secret.send(b"told")
    pair.base.rule(RULES.replace("camera/**", "secret"))
    assert bytes(waiting.recv(PATIENCE_S).data) == b"told"
    eventually(lambda: not [row for row in base.channels() if row.tag == "camera/aim" and row.direction == "out"])
    shared.send(b"down")
    with pytest.raises(TimeoutError):
        reading.recv(0.05)


def test_it_cannot_ask_in_words_of_its_own(pair: Pair, attack: Callable[..., object]) -> None:
    """Past its own daemon's library, in the name of a node that has no rule at all."""
    publisher = pair.base.session().tag("secret").publisher()
    publisher.send(b"money")
    attacker = attack(pair.address)
    asked = [
        (service.OPEN, service.OpenChannel(incarnation=publisher.incarnation, key=7, address="127.0.0.1:9")),
        (service.START, service.StartChannel(
            key=7, incarnation=publisher.incarnation, first_seq=0, address="127.0.0.1:9"
        )),
        (service.PULL, service.Pull(tag="secret", kind="latest")),
        (service.HOLD, service.Buffer(number=1, tag="secret", depth=10)),
        (service.DESTROY, service.DestroyTag(name="secret", force=True)),
    ]  # fmt: skip
    for name, request in asked:
        answer = attacker.ask(name, service.encode(request))  # type: ignore[attr-defined]
        assert isinstance(answer, Failure), name
        assert answer.error == "NotAllowed", name
