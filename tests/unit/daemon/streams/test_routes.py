import pytest

from ringcast.daemon.rings.demand import Demand, SubscribeOptions
from ringcast.daemon.streams import routes
from ringcast.daemon.table.rows import TagRow
from ringcast.errors import QosMismatch
from ringcast.model.place import Setting
from ringcast.model.priority import Change
from ringcast.model.tag import TagAttributes


def row(settings=None, **attributes):
    return TagRow(name="t", attributes=TagAttributes(**attributes), primary="a", settings=settings or {})


@pytest.mark.parametrize(
    ("options", "tag", "expected"),
    [
        (SubscribeOptions(), None, Demand(1, "", "nak")),
        (SubscribeOptions(reliable=True), None, Demand(1, "", "tcp", True)),
        (SubscribeOptions(every=4), row(), Demand(4, "publisher", "nak")),
        (SubscribeOptions(every=4, at="subscriber"), row(), Demand(1, "", "nak")),
        (SubscribeOptions(every=4, at="node:here"), row(), Demand(1, "", "nak")),
        (SubscribeOptions(every=4, at="node:c"), row(), Demand(4, "node:c", "nak")),
        # A proxy that leaves out nothing is a proxy all the same.
        (SubscribeOptions(at="node:c"), row(), Demand(1, "node:c", "nak")),
        (SubscribeOptions(every=4), row(at="node:c", transport="tcp"), Demand(4, "node:c", "tcp")),
        (
            SubscribeOptions(every=4, at="publisher", transport="udp"),
            row(at="node:c", transport="tcp"),
            Demand(4, "publisher"),
        ),
        (SubscribeOptions(every=4, at="publisher"), row({"": Setting(at="node:c")}), Demand(4, "node:c", "nak")),
        (
            SubscribeOptions(every=4),
            row({"": Setting(at="node:c"), "here": Setting(at="node:d")}),
            Demand(4, "node:d", "nak"),
        ),
        (
            SubscribeOptions(every=4),
            row({"": Setting(at="node:c"), "here": Setting(transport="tcp")}),
            Demand(4, "node:c", "tcp"),
        ),
        (SubscribeOptions(every=4), row({"there": Setting(at="node:c")}), Demand(4, "publisher", "nak")),
        # Nobody's word makes a reliable stream unreliable, or stops a stream where a transport is not installed.
        (SubscribeOptions(reliable=True), row({"": Setting(transport="udp")}), Demand(1, "", "tcp", True)),
        (SubscribeOptions(), row(transport="pigeon"), Demand(1, "", "nak")),
        # Only who asked for it goes without an order, and only where nobody scales by number on the way.
        (SubscribeOptions(ordered=False), row(transport="lateral:r=4"), Demand(1, "", "lateral+unordered:r=4")),
        (SubscribeOptions(ordered=False, every=4), row(transport="parity"), Demand(4, "publisher", "parity+unordered")),
        (SubscribeOptions(ordered=False, every=4, at="subscriber"), row(transport="parity"), Demand(1, "", "parity")),
        (SubscribeOptions(ordered=False, every=4, at="node:c"), row(transport="parity"), Demand(4, "node:c", "parity")),
        (SubscribeOptions(ordered=False), row(), Demand(1, "", "nak")),
        (SubscribeOptions(), row({"": Setting(transport="parity+unordered")}), Demand(1, "", "nak")),
        (SubscribeOptions(), row(transport="parity+unordered"), Demand(1, "", "nak")),
    ],
)
def test_who_decides(options, tag, expected):
    assert routes.demand(options, tag, "here") == expected


def test_settings_are_changed_one_by_one_and_taken_back():
    tag = row()
    settings = routes.changed(tag, "", "node:c", None)
    assert settings == {"": Setting(at="node:c")}
    settings = routes.changed(row(settings), "", None, "tcp")
    assert settings == {"": Setting(at="node:c", transport="tcp")}
    settings = routes.changed(row(settings), "b", "publisher", None)
    settings = routes.changed(row(settings), "", "", "")
    assert settings == {"b": Setting(at="publisher")}
    assert routes.changed(row(settings), "b", "", None) == {}


def test_a_setting_that_cannot_be():
    routes.check_setting("node:c", "tcp", {"c"}, 5)
    routes.check_setting(None, "udp", set(), 0)
    with pytest.raises(QosMismatch, match="the nodes are a, b"):
        routes.check_setting("node:c", None, {"b", "a"}, 0)
    with pytest.raises(QosMismatch, match="2 of the tag's subscribers asked for reliable delivery"):
        routes.check_setting(None, "udp", set(), 2)
    with pytest.raises(QosMismatch, match="pigeon"):
        routes.check_setting(None, "pigeon", set(), 0)


def test_a_wish_that_cannot_be():
    routes.check_options(SubscribeOptions(transport="udp"), row(), "here")
    routes.check_options(SubscribeOptions(reliable=True), row(transport="udp"), "here")
    with pytest.raises(QosMismatch, match="'udp' does not promise it"):
        routes.check_options(SubscribeOptions(transport="udp", reliable=True), None, "here")
    with pytest.raises(QosMismatch, match="an administrator chose it"):
        routes.check_options(SubscribeOptions(reliable=True), row({"": Setting(transport="udp")}), "here")
    with pytest.raises(QosMismatch, match="pigeon"):
        routes.check_options(SubscribeOptions(transport="pigeon"), None, "here")


def test_a_transport_without_an_order_is_refused_to_who_wants_one():
    with pytest.raises(QosMismatch, match="ordered=False"):
        routes.check_options(SubscribeOptions(transport="lateral+unordered"), row(), "here")
    routes.check_options(SubscribeOptions(transport="lateral+unordered", ordered=False), row(), "here")


@pytest.mark.parametrize(
    ("asked", "settings", "tag", "expected"),
    [
        ("", {}, "", ""),
        ("high", {}, "low fifo:3", "high fifo:3"),
        ("high", {"": Setting(priority="critical")}, "", "critical"),
        ("high", {"": Setting(priority="critical"), "here": Setting(priority="low")}, "", "low"),
        ("", {"here": Setting(priority="high"), "here#7": Setting(priority="fifo:30")}, "", "high fifo:30"),
        ("high", {"here#8": Setting(priority="low")}, "", "high"),
        ("high fifo:3", {"": Setting(priority="normal other")}, "", ""),
    ],
)  # fmt: skip
def test_how_urgent_part_by_part(asked, settings, tag, expected):
    found = routes.demand(SubscribeOptions(priority=asked), row(settings, priority=tag), "here", 7)
    assert found.priority == expected


def test_a_setting_changes_the_parts_that_it_names():
    settings = routes.changed(
        row({"b": Setting(transport="tcp", priority="low fifo:3")}), "b", None, None, Change("high")
    )
    assert settings == {"b": Setting(transport="tcp", priority="high fifo:3")}
    assert routes.changed(row({"b": Setting(priority="low")}), "b", None, None, Change("")) == {}
    moved = routes.moved(SubscribeOptions(priority="AF42"), None, None, Change(sched="rr:2"))
    assert moved.priority == "AF42 rr:2"


def test_what_is_no_priority_is_refused():
    with pytest.raises(QosMismatch, match="urgent"):
        routes.check_options(SubscribeOptions(priority="urgent"), None, "here")
    with pytest.raises(QosMismatch, match="1 to 99"):
        routes.check_urgency(Change(sched="fifo:0"))
