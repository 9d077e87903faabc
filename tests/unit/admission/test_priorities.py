"""Classes and schedules by deadline."""

from ringcast.admission.priorities import HIGHEST_FIFO, LOWEST_FIFO, assigned


def test_the_shortest_first_and_equal_deadlines_alike():
    assert assigned({"a": 0.05, "b": 0.005, "c": 0.05, "d": 3.0}) == {
        "a": ("high", "fifo:44"), "b": ("critical", "fifo:45"), "c": ("high", "fifo:44"), "d": ("normal", ""),
    }  # fmt: skip
    assert assigned({}) == {}


def test_more_deadlines_than_priorities_share_them_in_order():
    found = assigned({number: 1e-4 * (number + 1) for number in range(200)})
    given = [int(sched.removeprefix("fifo:")) for _, sched in found.values()]
    assert given == sorted(given, reverse=True)
    assert given[0] == HIGHEST_FIFO
    assert given[-1] >= LOWEST_FIFO
