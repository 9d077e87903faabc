from __future__ import annotations

from lab_fakes import CountedSteps

from ringcast.lab.push_pull.network import BETWEEN, INTERMEDIATE, PUBLISHER, Arrangement, collect


class FakeNetwork:
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        self.arranged: list[Arrangement] = []
        self.measured: list[tuple[Arrangement, int]] = []

    def arrange(self, arrangement):
        self.arranged.append(arrangement)

    def pin(self, **cores):
        assert not self.measured

    def round_trips(self, arrangement, size):
        self.measured.append((arrangement, size))
        return [1]


def test_rounds_go_back_and_forth_with_neighbours_of_one_size():
    network, steps = FakeNetwork(), CountedSteps()
    one, other = Arrangement(1), Arrangement(1, PUBLISHER)
    found = collect(network, [(one, 64), (one, 1), (other, 64), (other, 1), (one, 64)], 2, steps)
    forth = [(one, 1), (other, 1), (one, 64), (other, 64)]
    assert network.measured == forth + forth[::-1]
    assert network.arranged == [one, other]
    assert all(len(rounds) == 2 for rounds in found.values())
    assert steps.taken == steps.expected


def test_the_way_of_a_message():
    assert Arrangement(1).way == ["a", "b"]
    assert Arrangement(3, INTERMEDIATE).way == ["a", BETWEEN, "e"]
