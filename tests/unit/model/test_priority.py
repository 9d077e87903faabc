import pytest

from ringcast.model.priority import CLASSES, Change, Marking, Priority, code_point, name_of, read, settled


def test_classes_are_those_of_the_papers_table():
    found = {name: read(name).marking for name in CLASSES}
    assert found == {
        "low": Marking(10, 2), "normal": Marking(0, 0), "high": Marking(36, 6), "critical": Marking(44, 6)
    }  # fmt: skip
    assert [name_of(marking.dscp) for marking in found.values()] == ["AF11", "CS0", "AF42", "VA"]


def test_words_in_any_order():
    assert read("fifo:30 AF42 Critical") == Priority("critical", "AF42", "fifo:30")
    assert read("46").dscp == "EF"
    assert read("bandwidth:5000kbit high") == Priority("high", bandwidth="5mbit")
    assert read(read("bandwidth:5000kbit high").text) == read("high bandwidth:5mbit")
    assert read("bandwidth:5mbit").bandwidth_bps == 5_000_000
    assert read("") == Priority()


@pytest.mark.parametrize("text", ["urgent", "high low", "AF42 EF", "fifo:30 rr:3", "fifo:100", "64", "AF50", "x" * 200])
def test_what_is_none(text):
    with pytest.raises(ValueError, match="priority"):
        read(text)


def test_a_raw_code_point_has_the_band_of_its_class_selector():
    assert [read(text).marking.queue for text in ("AF42", "EF", "CS6", "AF11", "CS1", "LE", "AF21", "0")] == [
        6, 6, 6, 2, 2, 2, 0, 0,
    ]  # fmt: skip
    assert read("high AF11").marking == Marking(10, 6)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("", "", ""), ""), (("normal", "high", ""), ""), (("", "high", "low fifo:3"), "high fifo:3"),
        (("AF42", "high", ""), "high"), (("CS0",), ""), (("other", "fifo:3"), ""), (("normal CS0",), ""),
        (("normal EF",), "normal EF"), (("36",), "AF42"),
        (("bandwidth:1mbit", "high bandwidth:2mbit"), "high bandwidth:1mbit"),
    ],
)  # fmt: skip
def test_the_first_who_says_something_counts_and_equals_are_equal(asked, found):
    assert settled(asked) == found


def test_a_change_leaves_what_it_does_not_name():
    assert Change(level="high").applied("AF42 fifo:3") == "high AF42 fifo:3"
    assert Change(dscp="", sched="").applied("low AF42 fifo:3") == "low"
    assert Change().applied("low") == "low"
    assert Change(bandwidth="").applied("low bandwidth:1mbit") == "low"
    assert Change(bandwidth="2mbit").applied("low") == "low bandwidth:2mbit"
    assert not Change()
    assert Change(sched="")
    with pytest.raises(ValueError, match="the classes are"):
        Change(level="urgent").applied("")


def test_who_is_served_first_and_who_apart():
    words = ["low", "", "high", "critical", "low fifo:1", "fifo:30", "deadline:1ms/10ms"]
    orders = [read(text).order for text in words]
    assert orders == sorted(orders)
    assert [read(text).apart for text in words] == [False, False, True, True, True, True, True]


def test_code_points():
    assert [code_point(text) for text in ("AF11", "af43", "CS7", "EF", "VA", 12)] == [10, 38, 56, 46, 44, 12]
    for wrong in ("AF44", "-1", "64", "", "1.5"):
        with pytest.raises(ValueError, match="a DSCP is"):
            code_point(wrong)
