"""Ctrl-C works, and a program can end, whatever its threads wait for."""

import signal
import threading
from pathlib import Path

import pytest

import ringcast


@pytest.mark.parametrize(
    "wait",
    [
        "sub.recv()",
        "sub.recv_many(10)",
        "next(iter(sub))",
        "sub.blackboard().wait_newer()",
        "pub.wait_for_subscribers(99)",
        "sub.queue().get()",
        "asyncio.run(sub.recv_async())",
    ],
)
@pytest.mark.parametrize("asleep", [True, False])
def test_control_c_ends_the_wait(program, wait, asleep, eventually):
    waiter = program(f"""
        import asyncio, ringcast
        with ringcast.connect() as session:
            tag = session.tag("quiet")
            pub, sub = tag.publisher(), tag.subscribe()
            try:
                print("waiting")
                {wait}
            except KeyboardInterrupt:
                print("interrupted")
            pub.send(b"still works")
            print(tag.history().latest().data.decode())
        """)
    waiter.expect("waiting")
    # The signal may find it on its way into the wait, where only the slicing of the sleep saves it, or asleep.
    if asleep:
        stat = Path(f"/proc/{waiter.pid}/stat")
        eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "S")
    waiter.signal(signal.SIGINT)
    waiter.expect("interrupted", "still works")
    waiter.end()


def test_a_program_ends_although_threads_wait(program):
    ending = program("""
        import threading, ringcast
        session = ringcast.connect()
        subs = [session.subscribe(name) for name in ("a", "b", "**")]
        started = threading.Barrier(4)
        def wait(sub):
            started.wait()
            try:
                sub.recv()
            except ringcast.ClosedError:
                pass
        for sub in subs:
            threading.Thread(target=wait, args=(sub,), daemon=True).start()
        session.subscribe("c").on_message(print)
        session.subscribe("d").queue()
        session.subscribe("e").event()
        session.subscribe("f").fileno()
        started.wait()
        print("end")
        """)
    ending.expect("end")
    assert ending.end() == ""


def test_closing_a_session_wakes_everybody(session):
    sub = session.subscribe("quiet")
    pub = session.publisher("quiet")
    outcomes = []
    started = threading.Barrier(3)

    def run(wait):
        started.wait()
        try:
            wait()
        except ringcast.ClosedError as exc:
            outcomes.append(exc.what)

    threads = [threading.Thread(target=run, args=(wait,)) for wait in (sub.recv, lambda: pub.wait_for_subscribers(9))]
    for thread in threads:
        thread.start()
    started.wait()
    session.close()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 2
