from __future__ import annotations

import pytest

from ringcast.lab.adamant.field.observation import Heard, Sent, outcome
from ringcast.lab.adamant.field.plan import CONTENDERS
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.adamant.results import summarise

CELL = Cell(2, 0.03, 1.0, 100.0)
BY_NAME = {contender.name: contender for contender in CONTENDERS}


def test_what_was_heard_becomes_an_outcome() -> None:
    # Updates are 20 to 23; 19 warmed up. The first receiver misses 21, the second has 23 before 22 and 20 twice.
    heard = [
        Heard([19, 20, 22, 23], [9, 1000, 3000, 4000]),
        Heard([20, 20, 21, 23, 22], [1000, 1500, 1000, 1000, 2000]),
    ]
    for name, unsettled in (("nak", [1, 0]), ("udp", [0, 0])):
        made = outcome(CELL, BY_NAME[name], 4, heard, 20, Sent((5, 500), (7, 700), naks=2))
        assert made.received.tolist() == [[True, False, True, True], [True] * 4]
        assert made.latency_of(0) == pytest.approx([1e-6, 3e-6, 4e-6])
        assert (made.out_of_order, made.duplicates) == (1, 1)
        assert made.unsettled == unsettled
        assert made.datagrams == 12
        assert made.receivers["nak"][0] == 2
        assert summarise("x", made, real=True).configuration["real"] == "1"
        assert summarise("x", made, real=True).metrics["delivered"] == 87.5
