"""Each mistake is a clear error at the call, and nothing is lost by it."""

import threading
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

import ringcast


@pytest.fixture
def daemon(shared_daemon):
    return shared_daemon


def test_an_unknown_tag(session):
    with pytest.raises(ringcast.UnknownTag) as caught:
        session.tag("nowhere", create=False)
    assert caught.value.name == "nowhere"
    assert session.tags("nowhere") == []


@pytest.mark.parametrize("name", ["", "a//b", "a/*", "a b", "x" * 256, 7])
def test_a_name_that_is_none(session, name):
    with pytest.raises(ringcast.BadTagName):
        session.tag(name)


@pytest.mark.parametrize(
    ("attribute", "there", "asked"),
    [("codec", "json", "msgpack"), ("depth", 4, 5), ("capacity_bytes", 4096, 8192), ("max_wait_s", 0.5, 0.1)],
)
def test_attributes_that_disagree(session, connect, attribute, there, asked):
    session.tag("agreed", **{attribute: there})
    with pytest.raises(ringcast.TagConflict) as caught:
        connect().tag("agreed", **{attribute: asked})
    assert (caught.value.attribute, caught.value.existing, caught.value.requested) == (attribute, there, asked)
    assert getattr(connect().tag("agreed").attributes, attribute) == there


@pytest.mark.parametrize("attributes", [{"depth": 0}, {"depth": "8"}, {"capacity_bytes": -1}, {"max_wait_s": -1}])
def test_attributes_that_cannot_be(session, attributes):
    with pytest.raises(ringcast.QosMismatch):
        session.tag("odd", **attributes)


class Point(msgspec.Struct):
    x: float


@dataclass
class SamePoint:
    x: float


def test_schemas_that_disagree(session, connect):
    session.tag("typed", codec="json", schema=Point)
    connect().tag("typed", schema=SamePoint)
    connect().tag("typed")
    with pytest.raises(ringcast.TagConflict) as caught:
        connect().tag("typed", schema=list[int])
    assert caught.value.attribute == "schema"
    with pytest.raises(ringcast.CodecError, match="takes no schema"):
        session.tag("untyped", schema=Point)


def test_values_are_decoded_into_the_type_that_each_side_gave(session, connect):
    pub = session.publisher("typed", codec="msgpack", schema=Point)
    sub, plain = connect().subscribe("typed", schema=SamePoint), connect().subscribe("typed")
    pub.send(Point(1.5))
    assert sub.recv(timeout=30).data == SamePoint(1.5)
    assert plain.recv(timeout=30).data == {"x": 1.5}


def test_a_value_that_does_not_fit_the_tag(session):
    pub = session.publisher("typed", codec="json", schema=Point)
    for value in ({"x": "far"}, object()):
        with pytest.raises(ringcast.EncodeError):
            pub.send(value)
    with pytest.raises(TypeError, match="buffer"):
        session.publisher("raw").send("text")
    with pytest.raises(ringcast.EncodeError):
        session.publisher("arrays", codec="numpy", schema={"dtype": "f4"}).send(np.zeros(3))
    assert pub.send({"x": 1.0}) == 0


def test_bytes_that_are_not_what_the_tag_says(session, connect, program):
    sub = session.subscribe("lies", codec="json")
    other = program("""
        import ringcast, ringcast.codec.registry as registry
        registry._BUILT_IN["json"] = "ringcast.codec.raw:BYTES"
        with ringcast.connect() as session, session.publisher("lies", codec="json") as pub:
            pub.send(b"{")
            pub.send(b"1")
            print("sent")
            input()
        """)
    with pytest.raises(ringcast.DecodeError):
        sub.recv(timeout=30)
    assert sub.recv(timeout=30).data == 1
    other.expect("sent")


def test_a_codec_nobody_installed(session):
    with pytest.raises(ringcast.CodecError, match="installed"):
        session.tag("a", codec="martian")
    assert session.tags("a") == []


def test_a_message_larger_than_the_ring(session):
    pub = session.publisher("small", capacity_bytes=4096)
    sub = session.subscribe("small")
    with pytest.raises(ringcast.MessageTooLarge) as caught:
        pub.send(bytes(5000))
    assert (caught.value.length, caught.value.capacity_bytes) == (5000, 4096)
    assert pub.send(bytes(4096)) == 0
    assert len(sub.recv(timeout=30).data) == 4096


def test_use_after_close(session):
    tag = session.tag("a")
    pub, sub, history = tag.publisher(), tag.subscribe(), tag.history()
    for thing in (pub, sub, history):
        thing.close()
        thing.close()
    for use, what in (
        (lambda: pub.send(b""), "publisher"),
        (lambda: pub.wait_for_subscribers(1), "publisher"),
        (lambda: sub.recv(timeout=0), "subscriber"),
        (lambda: sub.on_message(print), "subscriber"),
        (sub.fileno, "subscriber"),
        (history.latest, "history"),
    ):
        with pytest.raises(ringcast.ClosedError) as caught:
            use()
        assert caught.value.what == what
    assert list(sub) == []
    session.close()
    for use in (session.status, tag.publisher, tag.subscribe, lambda: session.tag("b")):
        with pytest.raises(ringcast.ClosedError, match="session"):
            use()


def test_no_space(make_daemon):
    daemon = make_daemon("--budget", "8M")
    with ringcast.connect(socket=daemon.socket_path, start=False) as session:
        first = session.publisher("a", capacity_bytes=4 << 20)
        with pytest.raises(ringcast.NoSpace) as caught:
            session.publisher("b", capacity_bytes=4 << 20)
        assert caught.value.budget_bytes == 8 << 20
        assert caught.value.free_bytes < caught.value.wanted_bytes
        assert first.send(b"goes on") == 0
        first.close()
        # What the first left behind makes room.
        assert session.tag("b").publisher().send(b"fits now") == 0


def test_the_limit_of_open_files(program):
    crowded = program("""
        import os, resource, ringcast
        session = ringcast.connect()
        tag = session.tag("crowd", depth=16, capacity_bytes=4096)
        pub, sub = tag.publisher(), tag.subscribe()
        used = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, used + 20))
        made = []
        try:
            while True:
                made.append(tag.publisher())
        except ringcast.ResourceLimit as exc:
            print("limit" if "ulimit" in str(exc) else exc)
        print(pub.send(b"still"), sub.recv(timeout=30).data.decode())
        for other in made:
            other.close()
        tag.publisher().close()
        print("again")
        session.close()
        """)
    crowded.expect("limit", "0 still", "again")
    crowded.end()


def test_no_descriptor_is_left_for_a_session(program):
    crowded = program("""
        import os, resource, ringcast
        ringcast.connect().close()
        used, most = len(os.listdir("/proc/self/fd")) - 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        for room in range(3):
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + room, most))
            try:
                ringcast.connect()
                print("connected")
            except ringcast.ResourceLimit as exc:
                print("limit" if "ulimit" in str(exc) else exc)
        """)
    crowded.expect("limit", "limit", "limit")
    crowded.end()


def test_a_subscriber_without_room_for_a_ring_is_told(session, program):
    crowded = program("""
        import os, resource, ringcast
        session = ringcast.connect()
        sub = session.subscribe("crowd")
        used = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used, used))
        print("full")
        try:
            sub.recv(timeout=30)
        except ringcast.ResourceLimit as exc:
            print("limit" if "ulimit" in str(exc) else exc)
        """)
    crowded.expect("full")
    session.publisher("crowd").send(b"?")
    crowded.expect("limit")
    crowded.end()


def test_two_threads_on_one_subscriber(session, eventually):
    sub = session.subscribe("a")
    thread = threading.Thread(target=lambda: list(sub))

    def refused():
        try:
            sub.recv_nowait()
        except ringcast.WouldBlock:
            return False
        except ringcast.BusyError:
            return True

    assert refused() is False
    thread.start()
    eventually(refused)
    sub.close()
    thread.join()
