"""Somebody asks for one stream at ever other sizes; each takes a process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ringcast.control import service
from ringcast.control.limits import MAX_STAGES_PER_PEER
from ringcast.control.peering import Call, Failure, Reply


def children(pid: int) -> int:
    return sum(len(task.read_text().split()) for task in Path(f"/proc/{pid}/task").glob("*/children"))


def test_so_many_are_run_and_the_others_are_refused_in_words(
    victims: Callable[..., Any], attack: Callable[..., Any]
) -> None:
    (a,) = victims("a")
    pub = a.session.publisher("t")
    incarnation = a.session.tag("t").publishers()[0].info.incarnation
    before = children(a.daemon.process.pid)
    attacker, asked = attack(a.address), MAX_STAGES_PER_PEER + 20
    for number in range(1000, 1000 + asked):
        request = service.OpenChannel(
            incarnation=incarnation, size=(number, number), here=True, key=number, address=":5555", transport="udp"
        )
        payload = service.encode(request)
        attacker.say(Call(id=number, service=service.OPEN, size=len(payload), piece=payload))
    refused = [attacker.hear(Reply | Failure) for _ in range(20)]
    assert all("as many as one node may" in str(answer.fields) for answer in refused)
    assert a.refused["too many stages"] == 20
    assert children(a.daemon.process.pid) - before <= MAX_STAGES_PER_PEER
    pub.send(b"still served")
