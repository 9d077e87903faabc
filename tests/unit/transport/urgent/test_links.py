"""Reservations of bandwidth: what the kernel is told, and what is refused before it is asked."""

import json
import os
import threading

import pytest

from ringcast.transport.urgent import links as links_module
from ringcast.transport.urgent import queues, service_curves
from ringcast.transport.urgent.links import Links, Refused
from ringcast.transport.urgent.urgency import Urgency

LINK = 100_000_000


class Kernel:
    """Stands for `tc` and `ip`: one interface with the loopback's address."""

    def __init__(self, *roots):
        self.done = []
        self.roots = list(roots)
        self.rates = {}
        self.refuses = False

    def __call__(self, lines, show):
        if show == "address":
            return json.dumps([{"ifname": "eth7", "addr_info": [{"local": "127.0.0.1"}]}])
        if show.startswith("qdisc"):
            return json.dumps([{"dev": "eth7", "root": True, **row} for row in self.roots])
        if show.startswith("class"):
            return "".join(
                f"class htb {name} parent x prio 1 rate {rate} ceil 1Gbit\n" for name, rate in self.rates.items()
            )
        if self.refuses:
            raise Refused("tc: no")
        self.done += lines
        for words in map(str.split, lines):
            if words[0] == "class":
                self.rates[words[words.index("classid") + 1]] = words[words.index("rate") + 1]
            elif words[:2] == ["qdisc", "delete"]:
                self.rates.clear()
        return ""


@pytest.fixture
def kernel():
    return Kernel({"kind": "noqueue", "handle": "0:"})


@pytest.fixture
def links(kernel, tmp_path):
    made = Links(kernel, tmp_path / "run", tmp_path)
    made.rate_bps = LINK
    return made


def marker(tmp_path):
    return list((tmp_path / "run").iterdir()) if (tmp_path / "run").exists() else []


def test_the_first_makes_the_queues_and_the_last_removes_them(links, kernel, tmp_path):
    one = links.reserve("127.0.0.1", 36, 5_000_000)
    assert kernel.done[0] == "qdisc add dev eth7 root handle 7ca0: htb default 2"
    assert kernel.rates == {"7ca0:1": "100000000bit", "7ca0:2": "95000000bit", "7ca0:34": "5000000bit"}
    assert [line for line in kernel.done if line.startswith("filter")] == [
        "filter add dev eth7 parent 7ca0: prio 1 protocol ip u32 match ip dsfield 0x90 0xfc flowid 7ca0:34",
        "filter add dev eth7 parent 7ca0: prio 2 protocol ipv6 u32 match ip6 priority 0x90 0xfc flowid 7ca0:34",
    ]
    assert len(marker(tmp_path)) == 1
    links.release(one)
    assert kernel.done[-1] == "qdisc delete dev eth7 root handle 7ca0:"
    assert marker(tmp_path) == []
    links.release(one)
    assert kernel.done.count("qdisc delete dev eth7 root handle 7ca0:") == 1


def test_channels_of_one_code_point_share_a_class(links, kernel):
    one, other = (links.reserve("127.0.0.1", 36, 5_000_000) for _ in range(2))
    third = links.reserve("127.0.0.1", 44, 20_000_000)
    assert kernel.rates["7ca0:34"] == "10000000bit"
    assert kernel.rates["7ca0:2"] == "70000000bit"
    links.release(one)
    assert kernel.rates["7ca0:34"] == "5000000bit"
    links.release(other)
    before = len(kernel.done)
    links.reserve("127.0.0.1", 36, 1_000_000)  # its class is there still, because packets may wait in it
    assert not any("add" in line.split()[1] for line in kernel.done[before:])
    assert kernel.rates["7ca0:34"] == "1000000bit"
    links.release(third)
    assert not any("delete" in line for line in kernel.done)


def test_what_does_not_fit_is_refused_and_says_what_is_left(links, kernel):
    links.reserve("127.0.0.1", 36, 60_000_000)
    before = list(kernel.done)
    with pytest.raises(Refused, match=r"40mbit does not fit: eth7 carries 100mbit, of which 30mbit is left"):
        links.reserve("127.0.0.1", 44, 40_000_000)
    assert kernel.done == before


def test_no_more_is_reserved_than_the_administrator_allows(links):
    links.share = 0.25
    links.reserve("127.0.0.1", 36, 25_000_000)
    with pytest.raises(Refused, match="nothing is left"):
        links.reserve("127.0.0.1", 36, 1_000_000)


def test_packets_that_cannot_be_told_from_others_have_no_reservation(links):
    with pytest.raises(Refused, match="give the channel a class or a DSCP"):
        links.reserve("127.0.0.1", 0, 1_000_000)


def test_queues_of_somebody_else_are_left_alone(tmp_path):
    kernel = Kernel({"kind": "htb", "handle": "1:"})
    links = Links(kernel, tmp_path, tmp_path)
    links.rate_bps = LINK
    with pytest.raises(Refused, match="somebody set up"):
        links.reserve("127.0.0.1", 36, 1_000_000)
    assert kernel.done == []


def test_a_kernel_that_refuses_leaves_nothing_behind(links, kernel):
    kernel.refuses = True
    with pytest.raises(Refused, match="tc: no"):
        links.reserve("127.0.0.1", 36, 1_000_000)
    kernel.refuses = False
    links.reserve("127.0.0.1", 36, 90_000_000)


def test_a_card_that_does_not_say_how_fast_it_is(kernel, tmp_path):
    links = Links(kernel, tmp_path / "run", tmp_path)
    with pytest.raises(Refused, match=r"limits\.link_rate"):
        links.check("127.0.0.1", 36, 1_000_000)
    (tmp_path / "eth7").mkdir()
    (tmp_path / "eth7" / "speed").write_text("1000\n")
    links.check("127.0.0.1", 36, 900_000_000)
    with pytest.raises(Refused, match="eth7 carries 1gbit"):
        links.check("127.0.0.1", 36, 900_000_001)


def test_two_daemons_do_not_keep_the_queues_of_one_machine(links, kernel, tmp_path):
    one = links.reserve("127.0.0.1", 36, 1_000_000)
    other = Links(kernel, tmp_path / "run", tmp_path)
    other.rate_bps = LINK
    with pytest.raises(Refused, match="another daemon"):
        other.reserve("127.0.0.1", 36, 1_000_000)
    links.release(one)
    other.release(other.reserve("127.0.0.1", 36, 1_000_000))


def test_what_a_killed_daemon_left_is_removed_by_the_next(kernel, tmp_path):
    links = Links(kernel, tmp_path, tmp_path)
    links.sweep()
    assert kernel.done == []  # nothing says that there is anything
    (tmp_path / f"queues-{os.stat('/proc/self/ns/net').st_ino}").touch()
    kernel.roots = [{"kind": "htb", "handle": f"{queues.HANDLE:x}:"}]
    links.sweep()
    assert kernel.done == ["qdisc delete dev eth7 root"]
    assert list(tmp_path.iterdir()) == []


def test_a_daemon_that_starts_leaves_the_queues_of_one_that_runs(links, kernel, tmp_path):
    links.reserve("127.0.0.1", 36, 1_000_000)
    kernel.roots = [{"kind": "htb", "handle": f"{queues.HANDLE:x}:"}]
    before = list(kernel.done)
    Links(kernel, tmp_path / "run", tmp_path).sweep()
    assert kernel.done == before


class Crowded(Kernel):
    """While it works for one thread another one comes."""

    def __init__(self, *roots):
        super().__init__(*roots)
        self.then = None

    def __call__(self, lines, show):
        if lines and self.then is not None:
            other, self.then = threading.Thread(target=self.then), None
            other.start()
            other.join(0.2)  # it waits for its turn; without one it would be through by now
            self.others.append(other)
        return super().__call__(lines, show)

    others: list = []


@pytest.fixture
def crowded(tmp_path):
    kernel = Crowded({"kind": "noqueue", "handle": "0:"})
    kernel.others = []
    links = Links(kernel, tmp_path / "run", tmp_path)
    links.rate_bps = LINK
    yield links, kernel
    assert kernel.others


def joined(kernel):
    for other in kernel.others:
        other.join()


def test_two_channels_that_end_at_once_leave_nothing(crowded, tmp_path):
    links, kernel = crowded
    one, other = (links.reserve("127.0.0.1", 36, 5_000_000) for _ in range(2))
    kernel.then = lambda: links.release(other)
    links.release(one)
    joined(kernel)
    assert kernel.done[-1] == "qdisc delete dev eth7 root handle 7ca0:"
    assert marker(tmp_path) == []


def test_a_channel_that_begins_while_another_ends_has_its_bandwidth(crowded):
    links, kernel = crowded
    one, made = links.reserve("127.0.0.1", 36, 5_000_000), []
    kernel.then = lambda: made.append(links.reserve("127.0.0.1", 36, 7_000_000))
    links.release(one)
    joined(kernel)
    assert links.in_force(made[0]) == 7_000_000


def test_a_channel_that_takes_the_place_of_another_has_its_bandwidth_once_that_goes(links, kernel):
    stream = (5, "127.0.0.1")
    before = links.reserve("127.0.0.1", 36, 60_000_000, stream)
    after = links.reserve("127.0.0.1", 44, 60_000_000, stream)
    assert "30mbit is left" in after.waiting
    assert links.in_force(after) == 0
    with pytest.raises(Refused, match="does not fit"):
        links.reserve("127.0.0.1", 44, 60_000_000, (6, "127.0.0.1"))
    links.release(before)
    assert after.waiting == ""
    assert links.in_force(after) == 60_000_000
    assert not any("delete" in line for line in kernel.done)  # packets that wait in the queues would be lost
    links.release(after)
    assert kernel.done[-1] == "qdisc delete dev eth7 root handle 7ca0:"


def test_more_than_fits_in_the_place_of_another_is_refused_at_once(links):
    stream = (5, "127.0.0.1")
    links.reserve("127.0.0.1", 36, 60_000_000, stream)
    links.check("127.0.0.1", 36, 90_000_000, {stream})
    with pytest.raises(Refused, match="95mbit does not fit"):
        links.reserve("127.0.0.1", 36, 95_000_000, stream)
    with pytest.raises(Refused, match="60mbit does not fit"):
        links.check("127.0.0.1", 36, 60_000_000)
    assert links.holds(stream)
    assert not links.holds((6, "127.0.0.1"))


def test_one_that_waits_may_end_first(links):
    stream = (5, "127.0.0.1")
    before, after = (links.reserve("127.0.0.1", 36, 60_000_000, stream) for _ in range(2))
    links.release(after)
    links.release(before)
    assert not links.holds(stream)


def test_what_the_kernel_keeps_is_shown_and_not_what_was_asked_for(links, kernel):
    one, other = links.reserve("127.0.0.1", 36, 30_000_000), links.reserve("127.0.0.1", 36, 10_000_000)
    assert links.in_force(one) == 30_000_000
    kernel.rates["7ca0:34"] = "20000000bit"  # somebody changed the queues
    assert (links.in_force(one), links.in_force(other)) == (15_000_000, 5_000_000)
    kernel.rates.clear()
    assert links.in_force(one) == 0


def test_a_channel_says_what_of_its_bandwidth_the_kernel_keeps(links, kernel, monkeypatch):
    monkeypatch.setattr(links_module, "LINKS", links)
    channel = Urgency("high bandwidth:30mbit", 5)
    channel.reserve("127.0.0.1")
    assert (shown(channel).bandwidth, shown(channel).refused) == ("30mbit", "")
    successor = Urgency("normal bandwidth:30mbit", 5)
    successor.reserve("127.0.0.1")
    assert "give the channel a class" in shown(successor).lost
    kernel.rates.clear()
    assert shown(channel).bandwidth == ""
    assert "keeps nothing" in shown(channel).refused
    channel.close()


def shown(channel):
    return channel.in_force(None, 0, own=True)


class CurveKernel(Kernel):
    """Shows classes as `tc` shows those of HFSC."""

    def __call__(self, lines, show):
        if show.startswith("class"):
            return "".join(
                f"class hfsc {name} parent 7ca0:1 rt m1 90Mbit d 135us m2 {rate} ls m1 0bit d 0us m2 1Mbit\n"
                for name, rate in self.rates.items()
            )
        self.done += lines
        for words in map(str.split, lines):
            if words[0] == "class" and "m2" in words:
                self.rates[words[words.index("classid") + 1]] = words[words.index("m2") + 1]
        return ""


def test_where_the_kernel_has_it_reservations_are_service_curves(tmp_path):
    kernel = CurveKernel({"kind": "noqueue", "handle": "0:"})
    links = Links(
        lambda lines, show: Kernel.__call__(kernel, [], show) if show.startswith(("qdisc", "address")) else
        kernel(lines, show), tmp_path / "run", tmp_path, lambda: True,
    )  # fmt: skip
    links.rate_bps = LINK
    one = links.reserve("127.0.0.1", 36, 5_000_000)
    curve = "rt m1 90000000bit d 135us m2 5000000bit"
    assert kernel.done == [
        "qdisc add dev eth7 root handle 7ca0: hfsc default 2",
        "class add dev eth7 parent 7ca0: classid 7ca0:1 hfsc ls rate 100000000bit ul rate 100000000bit",
        "class add dev eth7 parent 7ca0:1 classid 7ca0:2 hfsc ls rate 95000000bit ul rate 100000000bit",
        "qdisc add dev eth7 parent 7ca0:2 pfifo_fast",
        f"class add dev eth7 parent 7ca0:1 classid 7ca0:34 hfsc {curve} ls rate 5000000bit ul rate 100000000bit",
        "filter add dev eth7 parent 7ca0: prio 1 protocol ip u32 match ip dsfield 0x90 0xfc flowid 7ca0:34",
        "filter add dev eth7 parent 7ca0: prio 2 protocol ipv6 u32 match ip6 priority 0x90 0xfc flowid 7ca0:34",
    ]
    assert links.in_force(one) == 5_000_000
    links.release(one)
    assert kernel.done[-1] == "qdisc delete dev eth7 root handle 7ca0:"


def test_service_curves_together_are_never_above_what_may_be_reserved():
    wanted = {36: 60_000_000, 44: 15_000_000, 10: 0}
    lines = queues.commands("eth7", LINK, {36: 60_000_000}, wanted, hfsc=True)
    curves = [line.split() for line in lines if " rt m1 " in line]
    first = [int(words[words.index("m1") + 1].removesuffix("bit")) for words in curves]
    assert sum(first) <= queues.MOST_SHARE * LINK
    assert [words[1] for words in curves] == ["change", "add"]  # the one that is there gives up some of its beginning
    (released,) = (line for line in lines if "classid 7ca0:1a " in line)
    assert released.endswith("hfsc ls rate 1000000bit ul rate 100000000bit")


def test_the_kernel_is_asked_by_trying():
    asked = []
    assert service_curves.probe(lambda command: asked.append(list(command)) or True)
    assert asked == [["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "hfsc"]]
    assert not service_curves.probe(lambda command: False)


def test_this_kernel_answers_and_what_cannot_be_run_is_a_no(monkeypatch):
    """Whatever it says is the same when it is asked again; a command that is not there says no."""
    assert service_curves.probe() == service_curves.probe() == service_curves.has_hfsc()
    monkeypatch.setattr(service_curves, "PROBE", ("no-such-command-here",))
    assert service_curves.probe() is False
