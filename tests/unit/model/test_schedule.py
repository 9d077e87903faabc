import pytest

from ringcast.model.schedule import Schedule, duration_ns, read, show_ns


@pytest.mark.parametrize(
    "text", ["other", "fifo:1", "fifo:99", "rr:10", "deadline:1ms/10ms", "deadline:250us/5ms/10ms"]
)
def test_what_is_read_is_written_the_same(text):
    assert read(text).text == text


def test_spellings_of_the_same_schedule():
    assert (
        read("deadline:1000us/10ms")
        == read("deadline:1ms/0.01s")
        == Schedule("deadline", 0, 1_000_000, 10_000_000, 10_000_000)
    )
    assert read("FIFO:30") == Schedule("fifo", 30)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no schedule"), ("idle", "there is no schedule"), ("fifo", "1 to 99"), ("fifo:0", "1 to 99"),
        ("fifo:100", "1 to 99"), ("rr:-1", "1 to 99"), ("other:3", "there is no schedule"),
        ("deadline:1ms", "a runtime and a period"), ("deadline:1/10", "no duration"),
        ("deadline:20ms/10ms", "runtime <= deadline"), ("deadline:1ms/20ms/10ms", "runtime <= deadline"),
        ("deadline:1ns/10ms", "at least 1024 ns"), ("deadline:1us/10us", "from 100us"),
        ("deadline:1ms/5s", "to 4194304us"),
        ("fifo:" + "9" * 80, "a schedule is"),
    ],
)  # fmt: skip
def test_what_is_none(text, said):
    with pytest.raises(ValueError, match=said):
        read(text)


def test_the_order_of_threads():
    ranks = [read(text).rank for text in ("other", "rr:1", "fifo:30", "deadline:1ms/10ms", "deadline:1ms/5ms")]
    assert ranks == sorted(ranks)
    assert read("deadline:1ms/10ms").share == pytest.approx(0.1)


def test_durations():
    assert [duration_ns(text) for text in ("1ms", "0.5s", "3ns")] == [1_000_000, 500_000_000, 3]
    assert [show_ns(ns) for ns in (1_000_000_000, 1_500_000_000, 1_001)] == ["1s", "1500ms", "1001ns"]
