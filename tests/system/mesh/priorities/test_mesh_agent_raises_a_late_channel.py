"""The agent makes a channel that misses its deadline more urgent, says so, and takes it back when it ends."""

import json
import os
import subprocess
import sys
import threading

import pytest


@pytest.mark.parametrize("transport", ["", "tcp"])
def test_what_misses_is_raised_and_taken_back(make_mesh, eventually, transport):
    """With a transport, it is an application's channel, and there is no other."""
    a, b = make_mesh(2)
    pub = a.session.publisher("arm/joints")
    eventually(lambda: b.knows("arm/joints"))
    stop = threading.Event()
    service = b.session.subscribe("arm/joints", transport=transport).on_message(lambda _: None) if transport else None

    def send():
        while not stop.wait(0.005):
            pub.send(b"x")

    sender = threading.Thread(target=send)
    sender.start()
    agent = subprocess.Popen(
        [sys.executable, "-m", "ringcast", "agent", "arm/*", "--deadline", "1ns", "--period", "200ms", "--json",
         "--looks", "200"],
        env={**os.environ, "RINGCAST_SOCKET": str(b.daemon.socket_path)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        changes = []
        while len(changes) < 2:
            line = json.loads(agent.stdout.readline())
            assert line["tag"] == "arm/joints"
            assert line["missed"] == line["messages"]  # nothing arrives within a nanosecond
            if "after" in line:
                assert line["done"] == ""
                changes.append((line["before"], line["after"]))
                assert [row.priority for row in b.incoming(tag="arm/joints")] == [line["after"]]
                assert {row.transport for row in b.incoming(tag="arm/joints")} == {transport or "nak"}
        assert changes == [("normal", "high"), ("high", "critical")]
        agent.terminate()
        agent.wait(timeout=30)
        eventually(lambda: [row.priority for row in b.incoming(tag="arm/joints")] in ([""], []))
    finally:
        stop.set()
        sender.join()
        if service is not None:
            service.close()
        agent.kill()
        agent.wait()
        agent.stdout.close()
