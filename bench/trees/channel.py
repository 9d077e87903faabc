"""Round trips over a channel between two nodes of one tree: run by that tree's own interpreter, so nothing of this
folder is imported. `channel.py TRANSPORT SIZE` starts two daemons and an echo; each line `COUNT` on its standard input
is answered with one line, the nanoseconds of so many round trips as JSON. The end of the input ends everything.

All run on one core: what is compared is the work, and not how the kernel spreads it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack

import ringcast

WAIT_S = 30.0
WARM_UP = 20


def daemon(stack, name, place, *options):
    path = f"{place}/{name}.sock"
    command = [sys.executable, "-m", "ringcast", "daemon", "--no-config", "--no-scout", "--name", name]
    process = subprocess.Popen([*command, "--socket", path, *options], stdin=subprocess.DEVNULL)
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)
    return path


def connect(path):
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return ringcast.connect(path, start=False)
        except ringcast.DaemonUnavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def echo(path, transport):
    with connect(path) as session:
        publisher = session.tag("back").publisher()
        subscriber = session.tag("there").subscribe(transport=transport)
        try:
            while True:
                publisher.send(subscriber.recv().data)
        except ringcast.RingcastError:
            return


def round_trip(publisher, subscriber, body):
    begin = time.perf_counter_ns()
    publisher.send(body)
    subscriber.recv(timeout=1.0)
    return time.perf_counter_ns() - begin


def main(transport, size):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # all that is started inherits it
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="ringcast-against-"))
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
            here, there = (f"127.0.0.1:{probe.getsockname()[1]}" for probe in (one, two))
        near = daemon(stack, "near", place, "--listen", here)
        far = daemon(stack, "far", place, "--listen", there, "--peer", here)
        other = subprocess.Popen([sys.executable, __file__, "echo", far, transport], stdin=subprocess.DEVNULL)
        stack.callback(other.wait, 30)
        stack.callback(other.terminate)
        session = stack.enter_context(connect(near))
        publisher = session.tag("there").publisher()
        subscriber = session.tag("back").subscribe(transport=transport)
        publisher.wait_for_subscribers(1, timeout=WAIT_S)
        body, deadline = bytes(size), time.monotonic() + WAIT_S
        while True:
            try:
                round_trip(publisher, subscriber, body)
                break
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise
        print("ready", flush=True)
        for line in sys.stdin:
            for _ in range(WARM_UP):
                round_trip(publisher, subscriber, body)
            print(json.dumps([round_trip(publisher, subscriber, body) for _ in range(int(line))]), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "echo":
        echo(sys.argv[2], sys.argv[3])
    else:
        main(sys.argv[1], int(sys.argv[2]))
