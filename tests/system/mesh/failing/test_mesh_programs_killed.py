"""kill -9 of programs at either end of a stream between nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringcast.testing.waiting import PATIENCE_S

PUBLISHER = """
    import ringcast
    pub = ringcast.connect(start=False).publisher("stream")
    pub.wait_for_subscribers(1)
    for number in range(int(input())):
        pub.send(b"%d" % number)
    print("sent")
    input()
"""
SUBSCRIBER = """
    import ringcast
    sub = ringcast.connect(start=False).subscribe("stream", reliable=True)
    print("up")
    input()
"""


def test_the_publisher_is_killed_and_another_comes(
    make_mesh: Any, run_program: Callable[..., Any], eventually: Callable[..., None], take: Callable[..., list[Any]]
) -> None:
    a, b = make_mesh(2)
    subs = [b.session.subscribe("stream"), b.session.subscribe("stream", reliable=True)]
    watch = b.session.watch("stream", kinds=["publisher"])
    for _ in range(2):
        program = run_program(PUBLISHER, a.daemon.socket_path)
        program.tell("5")
        program.expect("sent")
        came = watch.recv(PATIENCE_S)
        # From when its channels stand, all that it sent is there though its process is not.
        eventually(lambda: len(b.incoming()) == 2)
        program.kill()
        for sub in subs:
            got = take(sub, b"4")
            assert [(msg.data, msg.lost) for msg in got] == [(b"%d" % n, 0) for n in range(5)]
            assert {msg.publisher.incarnation for msg in got} == {came.publisher.incarnation}
        went = watch.recv(PATIENCE_S)
        assert (went.came, went.publisher) == (False, came.publisher)
        eventually(lambda: not b.incoming())
    # Its ring outlives it on its node, and can be pulled from afar.
    newest = b.session.tag("stream").history(publisher=came.publisher.incarnation).latest()
    assert newest.data == b"4"


def test_a_reliable_subscriber_is_killed_while_the_publisher_waits_for_it(
    make_mesh: Any, run_program: Callable[..., Any], eventually: Callable[..., None], take: Callable[..., list[Any]]
) -> None:
    a, b = make_mesh(2)
    pub = a.session.publisher("stream", depth=16, capacity_bytes=1 << 16, max_wait_s=60.0)
    eventually(lambda: b.knows("stream"))
    program = run_program(SUBSCRIBER, b.daemon.socket_path)
    program.expect("up")
    other = b.session.subscribe("stream")
    eventually(lambda: pub.subscribers == 2)
    program.kill()
    # The mirror had a reader that nobody frees but the daemon: without that, the publisher would wait a minute.
    for number in range(500):
        pub.send(bytes(2000) if number < 499 else b"end")
    eventually(lambda: pub.subscribers == 1)
    assert take(other, b"end")
