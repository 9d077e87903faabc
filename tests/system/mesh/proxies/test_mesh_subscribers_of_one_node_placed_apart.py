"""Two subscribers of one node have their proxies on different nodes; what one asked for is not overridden silently."""

import json
import os
import subprocess
import sys

import pytest

from ringcast.errors import QosMismatch


def ringcast(node, *words, **variables):
    environment = {**os.environ, "RINGCAST_SOCKET": str(node.daemon.socket_path), **variables}
    return subprocess.run(
        [sys.executable, "-m", "ringcast", *words], env=environment, capture_output=True, text=True, check=False
    )


def places(node, tag):
    return {one.id: one for one in node.session.observe(measured=False).subscribers if one.tag == tag}


def numbers(node, tag):
    """Of its subscribers there, in the order in which they came."""
    rows = node.session.tag(tag, create=False).subscribers(local=True)
    return sorted(row.info.id for row in rows)


def test_equal_wishes_by_way_of_different_nodes(make_mesh, eventually, take):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("cam")
    eventually(lambda: b.knows("cam") and c.knows("cam"))
    one, other = (b.session.subscribe("cam", every=2, at="publisher") for _ in range(2))
    assert [row.node for row in b.incoming(tag="cam")] == ["a"]
    first, second = numbers(b, "cam")
    c.session.set_channel("cam", node="b", subscriber=first, at="node:c")
    eventually(lambda: {row.node for row in b.incoming(tag="cam")} == {"a", "c"})
    for i in range(5):
        pub.send(b"%d" % i)
    assert [msg.seq for msg in take(one, b"4")] == [msg.seq for msg in take(other, b"4")] == [0, 2, 4]
    eventually(lambda: {first, second} <= places(a, "cam").keys())
    eventually(lambda: places(a, "cam")[first].by == "subscriber setting")
    assert places(a, "cam")[first].overrides == "publisher"  # and that is said
    assert places(a, "cam")[second].by == "subscriber"
    one.close()  # a setting for one subscriber ends with it: the number may be another's later
    eventually(lambda: a.session.tags("cam")[0].settings == {})
    with pytest.raises(QosMismatch, match=f"b#{second}"):
        b.session.set_channel("cam", node="b", subscriber=first, at="node:c")
    with pytest.raises(ValueError, match="node="):
        b.session.set_channel("cam", subscriber=second, at="node:c")


def test_set_says_whom_it_overrides(make_mesh, eventually):
    a, b, c = make_mesh(3)
    pub = a.session.publisher("cam")
    eventually(lambda: b.knows("cam") and c.knows("cam"))
    subs = [b.session.subscribe("cam", every=2, at="subscriber"), b.session.subscribe("cam", every=2)]
    first, _ = numbers(b, "cam")
    done = ringcast(a, "set", "cam", "--proxy", "node:c")
    assert done.returncode == 0, done.stderr
    assert f"subscriber b#{first} asked for at='subscriber' and is overridden: its proxy is at node:c" in done.stdout
    assert done.stdout.count("overridden") == 1
    done = ringcast(b, "channels", "--why")
    assert f"subscriber b#{first} (every 2): at node:c, because an administrator set it, though" in done.stdout
    assert len(subs) == 2
    pub.close()


def test_a_plan_moves_those_who_leave_it_to_others(make_mesh, eventually, take):
    """Of the four of b, three want together more than the whole stream, and one asked for its place."""
    a, b = make_mesh(2)
    pub = a.session.publisher("cam", depth=8192)
    eventually(lambda: b.knows("cam"))
    own = b.session.subscribe("cam", every=5, at="publisher")
    subs = {every: b.session.subscribe("cam", every=every) for every in (2, 3, 4)}
    by_hand = b.session.subscribe("cam", every=5)
    for _ in range(2000):
        pub.send(b"x" * 1000)
    fixed, *_, last = numbers(b, "cam")
    a.session.set_channel("cam", node="b", subscriber=last, at="publisher")
    eventually(lambda: places(b, "cam")[last].by == "subscriber setting")
    done = ringcast(b, "place", "--live", "--apply")
    assert done.returncode == 0, done.stderr
    assert "because a subscriber or an administrator chose the place" in done.stderr + done.stdout
    eventually(lambda: {(row.node, row.every) for row in b.incoming(tag="cam")} == {("a", 1), ("a", 5)})
    assert places(b, "cam")[fixed].by == "subscriber"
    assert places(b, "cam")[last].by == "subscriber setting"  # set by hand for it alone: no plan takes it
    assert {one.by for number, one in places(b, "cam").items() if number not in (fixed, last)} == {"plan"}
    by_hand.close()
    while (pub.send(b"x" * 1000) + 1) % 60:
        pass
    pub.send(b"end")
    for every, sub in [*subs.items(), (5, own)]:
        got = take(sub, b"end")
        assert [msg.seq for msg in got] == list(range(got[0].seq, got[-1].seq + 1, every))
        assert sum(msg.lost for msg in got) == 0
    done = ringcast(b, "place", "--live", "--override", "--json")
    assert '"proxy": "b"' in done.stdout
    assert ringcast(b, "place", "--apply").returncode == 2


def test_a_plan_without_the_solver_is_the_rules_and_says_so(make_mesh, eventually, tmp_path):
    (tmp_path / "highspy.py").write_text("raise ImportError('as if it were not installed')")
    a, b = make_mesh(2)
    pub = a.session.publisher("cam", depth=8192)
    eventually(lambda: b.knows("cam"))
    subs = [b.session.subscribe("cam", every=every) for every in (2, 3, 4, 5)]
    for _ in range(2000):
        pub.send(b"x" * 1000)
    done = ringcast(b, "place", "--live", "--json", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "by the rule without a solver" in done.stderr
    assert {one["proxy"] for one in json.loads(done.stdout)["streams"]} == {"b"}
    assert len(subs) == 4
