"""The only reader of a stream from another node receives it in its own process, until somebody else wants it too."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringcast.control import link
from ringcast.control.notices import IntakeUnwanted, IntakeWanted, RingUp
from ringcast.control.requests import IntakeDown, IntakeUp, Subscribe, Unsubscribe
from ringcast.testing.waiting import PATIENCE_S

Eventually = Callable[..., None]
DEPTH = 8192
"""More than any of these tests sends: nothing is overwritten, however slow the machine."""


def receivers(node: Any, tag: str) -> list[str]:
    return [row.receiver for row in node.incoming(tag=tag)]


@pytest.fixture
def stream(make_mesh: Any, eventually: Eventually) -> tuple[Any, Any, Any]:
    """Two nodes, and a publisher on the first that the second knows of."""
    a, b = make_mesh(2)
    pub = a.session.publisher("stream", depth=DEPTH, capacity_bytes=1 << 20)
    eventually(lambda: b.knows("stream"))
    return a, b, pub


def test_one_reader_receives_itself_and_two_do_not(stream: Any, eventually: Eventually, take: Any) -> None:
    _, b, pub = stream
    first = b.session.subscribe("stream")
    assert receivers(b, "stream") == ["subscriber"]
    pub.send(b"alone")
    assert [msg.seq for msg in take(first, b"alone")] == [0]
    with b.connect() as other:
        second = other.subscribe("stream")
        assert receivers(b, "stream") == ["daemon"]
        pub.send(b"both")
        assert [(msg.seq, msg.lost) for sub in (first, second) for msg in take(sub, b"both")] == [(1, 0), (1, 0)]
    eventually(lambda: receivers(b, "stream") == ["subscriber"])
    pub.send(b"alone again")
    assert [(msg.seq, msg.lost) for msg in take(first, b"alone again")] == [(2, 0)]


HOW = {
    "a wildcard": lambda session: session.subscribe("*"),
    "a reliable subscriber": lambda session: session.subscribe("stream", reliable=True),
    "a history here": lambda session: session.tag("stream").local_history(),
    "a buffer here": lambda session: session.tag("stream").history(depth=16, at="subscriber"),
}


@pytest.mark.parametrize("who", HOW)
def test_whoever_else_reads_it_has_the_daemon_receive(who: str, stream: Any, eventually: Eventually, take: Any) -> None:
    _, b, pub = stream
    sub = b.session.subscribe("stream")
    assert receivers(b, "stream") == ["subscriber"]
    with b.connect() as other:
        reading = HOW[who](other)
        eventually(lambda: receivers(b, "stream") and "subscriber" not in receivers(b, "stream"))
        pub.send(b"x")
        assert [(msg.seq, msg.lost) for msg in take(sub, b"x")] == [(0, 0)]
        reading.close()
    eventually(lambda: receivers(b, "stream") == ["subscriber"])


def test_of_two_publishers_the_daemon_receives(stream: Any, eventually: Eventually, take: Any) -> None:
    a, b, pub = stream
    sub = b.session.subscribe("stream")
    another = a.session.publisher("stream")
    eventually(lambda: receivers(b, "stream") == ["daemon", "daemon"])
    pub.send(b"1")
    another.send(b"1")
    assert {sub.recv(PATIENCE_S).publisher.incarnation for _ in range(2)} == {pub.incarnation, another.incarnation}
    another.close()
    eventually(lambda: receivers(b, "stream") == ["subscriber"])
    pub.send(b"2")
    assert [(msg.seq, msg.lost) for msg in take(sub, b"2")] == [(1, 0)]


@pytest.mark.parametrize("waits", [True, False])
def test_nothing_is_lost_or_twice_while_others_come_and_go(waits: bool, stream: Any, take: Any) -> None:
    """Whether the reader waits for each message, and so receives it itself, or comes for all of them at the end."""
    _, b, pub = stream
    sub = b.session.subscribe("stream")
    over = threading.Event()

    def come_and_go() -> None:
        with b.connect() as other:
            while not over.is_set():
                with other.subscribe("stream"):
                    pub.send(b"x")

    def send() -> None:
        for _ in range(2000):
            pub.send(b"x")
            over.wait(0.0005)

    threads = [threading.Thread(target=work) for work in (come_and_go, send)]
    for thread in threads:
        thread.start()

    def finish() -> None:
        threads[1].join()
        over.set()
        threads[0].join()
        pub.send(b"end")

    last = threading.Thread(target=finish)
    last.start()
    if not waits:
        last.join()
    try:
        got = take(sub, b"end")
    finally:
        over.set()
        last.join()
    assert [(msg.seq, msg.lost) for msg in got] == [(seq, 0) for seq in range(pub.next_seq)]


def held(node: Any) -> list[tuple[int, int, bytes]]:
    """The history that the node itself has of it, with what is lost before each message."""
    history = node.session.tag("stream").history(at="subscriber")
    return [(msg.seq, msg.lost, bytes(msg.data)) for msg in history.since(history.bounds()[0])]


def test_the_history_goes_on_when_the_stream_changes_hands(stream: Any, eventually: Eventually, take: Any) -> None:
    _, b, pub = stream
    pub.send(b"before anybody came")
    sub = b.session.subscribe("stream")
    sent = [(pub.send(b"%d" % i), 0, b"%d" % i) for i in range(300)]
    take(sub, b"299")
    assert (receivers(b, "stream"), held(b)) == (["subscriber"], sent)
    with b.connect() as other:
        late = other.subscribe("stream", start="earliest")
        assert (receivers(b, "stream"), held(b)) == (["daemon"], sent)
        sent.append((pub.send(b"to both"), 0, b"to both"))
        assert [(msg.seq, msg.lost, msg.data) for msg in take(late, b"to both")] == sent
        assert [(msg.seq, msg.lost) for msg in take(sub, b"to both")] == [(301, 0)]
        assert held(b) == sent
    eventually(lambda: receivers(b, "stream") == ["subscriber"])
    assert held(b) == sent
    sent.append((pub.send(b"alone again"), 0, b"alone again"))
    assert [(msg.seq, msg.lost) for msg in take(sub, b"alone again")] == [(302, 0)]
    assert held(b) == sent


def test_the_history_goes_on_while_others_come_and_go(make_mesh: Any, eventually: Eventually, take: Any) -> None:
    """In a ring that overwrites its oldest all the time: what is held is without gaps, and ends with the newest."""
    a, b = make_mesh(2)
    pub = a.session.publisher("stream", depth=64, capacity_bytes=1 << 16)
    eventually(lambda: b.knows("stream"))
    sub = b.session.subscribe("stream")
    with b.connect() as other:
        for number in range(20):
            for _ in range(30):
                pub.send(b"x")
            pub.send(b"%d" % number)
            take(sub, b"%d" % number)
            with other.subscribe("stream"):
                found = [seq for seq, lost, _ in held(b) if lost == 0]
                assert found == list(range(max(0, pub.next_seq - 64), pub.next_seq))
    assert [seq for seq, _, _ in held(b)] == list(range(pub.next_seq - 64, pub.next_seq))


def test_a_second_subscriber_finds_room_where_the_first_one_had_it(
    tmp_path: Path, make_mesh: Any, eventually: Eventually, take: Any
) -> None:
    """The node's memory has room for one mirror and not for two."""
    small = tmp_path / "small.toml"
    small.write_text('[limits]\nmemory = "40M"\n')
    a, b = make_mesh(2, b={"RINGCAST_CONFIG": str(small)})
    pub = a.session.publisher("stream", depth=64, capacity_bytes=16 << 20)
    eventually(lambda: b.knows("stream"))
    first = b.session.subscribe("stream")
    with b.connect() as other:
        second = other.subscribe("stream")
        pub.send(b"x")
        assert [(msg.seq, msg.lost) for sub in (first, second) for msg in take(sub, b"x")] == [(0, 0), (0, 0)]


READER = """
    import ringcast
    sub = ringcast.connect(start=False).subscribe("stream")
    print("up", flush=True)
    while True:
        print(sub.recv().data.decode(), flush=True)
"""


def test_a_reader_that_receives_itself_is_killed(
    stream: Any, run_program: Callable[..., Any], eventually: Eventually, take: Any
) -> None:
    a, b, pub = stream
    other = a.session.publisher("other", depth=DEPTH)
    eventually(lambda: b.knows("other"))
    neighbour = b.session.subscribe("other")
    program = run_program(READER, b.daemon.socket_path)
    program.expect("up")
    assert receivers(b, "stream") == ["subscriber"]
    pub.send(b"first")
    program.expect("first")
    program.kill()
    eventually(lambda: not b.incoming(tag="stream"))
    other.send(b"unhurt")
    assert [(msg.seq, msg.lost) for msg in take(neighbour, b"unhurt")] == [(0, 0)]
    sub = b.session.subscribe("stream")
    assert receivers(b, "stream") == ["subscriber"]
    pub.send(b"next")
    assert [(msg.seq, msg.lost) for msg in take(sub, b"next")] == [(1, 0)]


def test_a_reader_that_receives_itself_is_stopped_when_another_comes(
    stream: Any, run_program: Callable[..., Any], take: Any
) -> None:
    _, b, pub = stream
    program = run_program(READER, b.daemon.socket_path)
    program.expect("up")
    assert receivers(b, "stream") == ["subscriber"]
    program.signal(signal.SIGSTOP)
    try:
        sub = b.session.subscribe("stream")
        numbers = [pub.send(b"%d" % i) for i in range(100)]
        assert [(msg.seq, msg.lost) for msg in take(sub, b"99")] == [(number, 0) for number in numbers]
    finally:
        program.signal(signal.SIGCONT)
    program.expect(*(str(i) for i in range(100)))


def test_a_reader_busy_with_something_else_misses_nothing(stream: Any, eventually: Eventually) -> None:
    """Its process receives while it does not ask: what came counts as received by the node."""
    _, b, pub = stream
    sub = b.session.subscribe("stream")
    pub.send(b"x")
    sub.recv(PATIENCE_S)
    for _ in range(500):
        pub.send(b"x")
    eventually(lambda: [row.messages for row in b.incoming(tag="stream")] == [501])
    assert [(msg.seq, msg.lost) for msg in (sub.recv(0) for _ in range(500))] == [(n, 0) for n in range(1, 501)]


def test_waiting_ends_in_time_and_when_the_subscriber_is_closed(stream: Any) -> None:
    _, b, _ = stream
    sub = b.session.subscribe("stream")
    assert receivers(b, "stream") == ["subscriber"]
    for timeout in (0, 0.001, 0.3):
        with pytest.raises(TimeoutError):
            sub.recv(timeout)
    waiting = threading.Timer(0.2, sub.close)
    waiting.start()
    began = time.monotonic()
    with pytest.raises(Exception, match="closed"):
        sub.recv()
    waiting.join()
    assert time.monotonic() - began < PATIENCE_S


# ---------------------------------------------------------------------- clients that do not do as they are asked


def asked(wire: Any) -> IntakeWanted:
    while not isinstance(notice := wire.notice(), IntakeWanted):
        assert notice is not None
    return notice


def subscribe(wire: Any, answer: Callable[[IntakeWanted], Any]) -> None:
    """Subscribe, and answer what the daemon asks meanwhile."""
    link.send(wire.socket, Subscribe(id=77, pattern="stream", subscription=5))
    wanted = asked(wire)
    assert (wanted.subscription, bool(wanted.channel)) == (5, True)
    if (said := answer(wanted)) is not None:
        link.send(wire.socket, said)


@pytest.mark.parametrize("answer", ["refuses", "says nothing"])
def test_for_a_client_that_cannot_receive_the_daemon_does(
    answer: str, stream: Any, open_wire: Callable[..., Any], eventually: Eventually
) -> None:
    _, b, _ = stream
    wire = open_wire(b.daemon.socket_path)
    subscribe(wire, lambda wanted: IntakeDown(id=78, intake=wanted.intake) if answer == "refuses" else None)
    while not isinstance(notice := wire.notice(), RingUp):
        assert notice is not None
        assert not isinstance(notice, IntakeWanted)
    assert receivers(b, "stream") == ["daemon"]


def test_a_client_that_leaves_when_it_is_asked(
    stream: Any, open_wire: Callable[..., Any], eventually: Eventually, take: Any
) -> None:
    _, b, pub = stream
    wire = open_wire(b.daemon.socket_path)
    subscribe(wire, lambda _: None)
    wire.socket.close()
    sub = b.session.subscribe("stream")
    pub.send(b"x")
    assert [(msg.seq, msg.lost) for msg in take(sub, b"x")] == [(0, 0)]
    eventually(lambda: receivers(b, "stream") == ["subscriber"])


def test_a_client_that_answers_what_it_was_not_asked_is_shown_the_door(
    stream: Any, open_wire: Callable[..., Any]
) -> None:
    _, b, _ = stream
    wire = open_wire(b.daemon.socket_path)
    link.send(wire.socket, IntakeUp(id=3, intake=4, incarnation=5))
    while (message := wire.receive()) is not None:
        assert not isinstance(message, IntakeUnwanted | Unsubscribe)


FORKING = """
    import gc, os, sys
    import ringcast
    session = ringcast.connect(start=False)
    sub = session.subscribe("stream")
    print("up", flush=True)
    print(sub.recv().data.decode(), flush=True)
    child = os.fork()
    if child == 0:
        del sub, session
        gc.collect()
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    print(sub.recv().data.decode(), flush=True)
"""


def test_a_forked_child_leaves_receiving_to_its_parent(stream: Any, run_program: Callable[..., Any]) -> None:
    _, b, pub = stream
    program = run_program(FORKING, b.daemon.socket_path)
    program.expect("up")
    assert receivers(b, "stream") == ["subscriber"]
    pub.send(b"before")
    program.expect("before", "7")
    pub.send(b"after")
    program.expect("after")
    program.end()
