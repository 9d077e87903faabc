"""Variables between nodes: complete after joining, right after loss, selected before they travel."""

import time

import pytest

import ringcast


@pytest.fixture
def plant(make_mesh):
    a, b = make_mesh(2)
    with a.session.variables("plant", period_s=0.005, frame_s=0.2) as made:
        made.add_many({f"v/{i}": float(i) for i in range(500)})
        made.add("w/x", 1.0)
        yield a, b, made


@pytest.mark.parametrize("transport", ["nak", "tcp", "udp", "multicast+nak"])
def test_another_node_has_everything(plant, eventually, transport):
    _, b, made = plant
    eventually(lambda: b.knows("plant"))
    theirs = b.session.variables("plant")
    following = theirs.subscribe(transport=transport)
    following.wait_complete(60)
    assert len(following) == 501
    made["v/7"] = -7.0
    eventually(lambda: following["v/7"] == -7.0)
    theirs.ask_set({"v/8": -8.0}, timeout=30)
    assert made["v/8"] == -8.0


def test_what_is_not_selected_does_not_travel(plant, eventually):
    a, b, made = plant
    eventually(lambda: b.knows("plant"))
    following = b.session.variables("plant").subscribe("w/*", policy=ringcast.OnChange(longest_s=0.05))
    queue = following.queue()
    assert set(queue.get(60).names) == {"w/x"}
    for number in range(20):
        made.set_many(made.index([f"v/{i}" for i in range(500)]), [float(number)] * 500)
        made.flush()
    made["w/x"] = 5.0
    while set((told := queue.get(60)).numbers.tolist()) != {5.0}:
        assert set(told.names) == {"w/x"}
    incoming = {row.tag: row.bytes or 0 for row in b.session.channels() if row.direction == "in"}
    assert "plant" not in incoming, "the whole stream stays where it is"
    (view,) = [tag for tag in incoming if tag.startswith("@view/")]
    assert incoming[view] < a.session.tags("plant")[0].bytes / 10


def test_equal_wishes_share_one_view(plant, eventually):
    _, b, _ = plant
    eventually(lambda: b.knows("plant"))
    theirs = b.session.variables("plant")
    both = [theirs.subscribe("w/*", policy=ringcast.Periodic(0.05)).queue() for _ in range(2)]
    other = theirs.subscribe("w/*", policy=ringcast.Periodic(0.06)).queue()
    for queue in (*both, other):
        assert set(queue.get(60).names) == {"w/x"}
    views = [row for row in b.session.tags("@view/**") if row.subscribers]
    assert sorted(row.subscribers for row in views) == [1, 2]


def test_times_of_values_are_of_the_readers_clock(make_mesh, eventually):
    hour_ns = 3600 * 10**9
    a, b = make_mesh(2, a={"RINGCAST_CLOCK_AHEAD_S": "3600"})
    now_ns = time.time_ns() + hour_ns  # as a program on that node would say
    with a.session.variables("plant", period_s=0.005, frame_s=0.2) as made:
        made.add("old", 1.0, event_ns=now_ns - 60 * 10**9)
        made.add("new", 2.0, event_ns=now_ns)
        eventually(lambda: b.knows("plant"))
        eventually(lambda: b.session.clock("a").probes >= 4)
        following = b.session.variables("plant").subscribe(transport="nak")
        following.wait_complete(60)
        assert abs(following.time_ns("new") - (now_ns - hour_ns)) < 10**9
        assert following.time_ns("new") - following.time_ns("old") == 60 * 10**9
        view = b.session.variables("plant").subscribe("new", policy=ringcast.OnChange(), at="node:b")
        view.wait_complete(60)
        assert abs(view.time_ns("new") - (now_ns - hour_ns)) < 10**9


@pytest.mark.parametrize("busy_poll", [False, True], ids=["sleeping", "polling"])
def test_the_only_subscription_of_a_node_receives_itself(plant, eventually, busy_poll):
    _, b, made = plant
    eventually(lambda: b.knows("plant"))

    def receivers():
        return [row.receiver for row in b.incoming(tag="plant")]

    first = b.session.variables("plant").subscribe(transport="nak", busy_poll=busy_poll)
    first.wait_complete(60)
    assert receivers() == ["subscriber"]
    made["v/7"] = -7.0
    eventually(lambda: first["v/7"] == -7.0)
    with b.connect() as other:
        second = other.variables("plant").subscribe(transport="nak")
        second.wait_complete(60)
        assert receivers() == ["daemon"]
        made["v/8"] = -8.0
        eventually(lambda: first["v/8"] == second["v/8"] == -8.0)
    eventually(lambda: receivers() == ["subscriber"])
    made["v/9"] = -9.0
    eventually(lambda: first["v/9"] == -9.0)
    first.close()
