"""Whatever happens to the process that built a network, nothing of it stays on the machine."""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec
import pytest
from lab_fakes import network_of

from ringcast.lab.testbed import cleanup
from ringcast.lab.testbed.cleanup import LabError, Record
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import chain, pair, star
from ringcast.testing.waiting import PATIENCE_S

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")

OWNER = """
import signal
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.topology import chain
with Testbed(chain({nodes}), keep={keep}) as bed:
    sleeper = bed.nodes[0].spawn(["sleep", "1000"])
    print(bed.run_id, sleeper.pid, flush=True)
    {then}
"""


def traces(run: str) -> list[str]:
    """All that a network leaves: namespaces, its record, its directory."""
    names = os.listdir(cleanup.NAMESPACES) if cleanup.NAMESPACES.exists() else []
    return [name for name in (*names, *os.listdir(cleanup.STATE)) if run in name]


def owner(then: str, nodes: int = 2, keep: bool = False) -> subprocess.Popen[str]:
    script = OWNER.format(nodes=nodes, keep=keep, then=then)
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> tuple[str, int]:
    """The run id of the owner's network, and a process in it."""
    assert process.stdout is not None
    run, pid = process.stdout.readline().split()
    return run, int(pid)


@pytest.fixture
def killed() -> Iterator[tuple[str, int]]:
    """What an owner left that was killed with SIGKILL."""
    process = owner("signal.pause()")
    run, pid = told(process)
    sleeper = os.pidfd_open(pid)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    yield run, sleeper
    os.close(sleeper)
    cleanup.remove(run)


def has_ended(pidfd: int) -> bool:
    return bool(select.select([pidfd], [], [], PATIENCE_S)[0])


def test_the_next_network_removes_what_a_killed_owner_left(killed: tuple[str, int]) -> None:
    run, sleeper = killed
    assert traces(run)
    with Testbed(pair()):
        assert traces(run) == []
    assert has_ended(sleeper)


def test_a_network_whose_owner_lives_is_left_alone() -> None:
    process = owner("signal.pause()")
    run, _ = told(process)
    try:
        with Testbed(pair()):
            assert run in {record.run for record in cleanup.records()}
            assert len(traces(run)) == 4
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
        cleanup.remove(run)


def test_a_process_number_that_was_used_again_is_not_the_owner(killed: tuple[str, int]) -> None:
    run, _ = killed
    record = next(record for record in cleanup.records() if record.run == run)
    # As if our own process had the number of the dead one.
    stolen = msgspec.structs.replace(record, pid=os.getpid())
    assert stolen.abandoned
    assert msgspec.structs.replace(Record.mine(run, record.topology, kept=False), boot="another").abandoned
    assert not Record.mine(run, record.topology, kept=False).abandoned


@pytest.mark.parametrize("nodes", [2, 12, 40])
def test_ctrl_c_at_any_moment_leaves_nothing(nodes: int) -> None:
    """The signal is sent as soon as there is a record, so it meets the network half built, or nearly."""
    process = owner("signal.pause()", nodes)
    run = network_of(process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert "KeyboardInterrupt" in errors
    assert traces(run) == []


def test_what_an_impatient_ctrl_c_leaves_is_removed_by_the_next() -> None:
    process = owner("signal.pause()")
    run, _ = told(process)
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None:
        assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    cleanup.sweep()
    assert traces(run) == []


def test_an_exception_in_the_block_leaves_nothing() -> None:
    bed = Testbed(star(2))

    def fail() -> None:
        with bed:
            spawned.append(bed.node("a").spawn(["sleep", "1000"]))
            raise ZeroDivisionError

    spawned: list[subprocess.Popen[str]] = []
    with pytest.raises(ZeroDivisionError):
        fail()
    assert traces(bed.run_id) == []
    assert spawned[0].returncode == -signal.SIGTERM


def test_an_exception_while_building_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.lab.testbed.network.node_script", lambda plan, name: "echo no luck >&2; exit 1")
    bed = Testbed(pair())
    with pytest.raises(LabError, match="cannot set up the nodes: no luck; no luck"), bed:
        pass
    assert traces(bed.run_id) == []


def test_a_process_that_ignores_polite_signals_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "_GRACE_S", 0.05)
    with Testbed(pair()) as bed:
        stubborn = bed.node("a").spawn(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"])
        assert stubborn.stdout is not None
        assert stubborn.stdout.readline() == "ready\n"
    assert stubborn.returncode == -signal.SIGKILL
    assert traces(bed.run_id) == []


def test_a_kept_network_outlives_its_process_until_it_is_removed() -> None:
    process = owner("sleeper.kill()", keep=True)
    run, _ = told(process)
    process.communicate(timeout=PATIENCE_S)
    try:
        cleanup.sweep()
        record = next(record for record in cleanup.records() if record.run == run)
        assert Testbed.attach(record).node("b").run(["ls", "/sys/class/net"]).stdout.split() == ["lo", "to-a"]
    finally:
        cleanup.remove(run)
    assert traces(run) == []


def test_a_namespace_of_ours_without_a_record_is_nobodys() -> None:
    run = secrets.token_hex(4)
    subprocess.run([cleanup.tool("ip"), "netns", "add", cleanup.namespace(run, "a")], check=True)
    cleanup.sweep()
    assert traces(run) == []


def test_removing_twice_and_removing_what_never_was() -> None:
    with Testbed(chain(3)) as bed:
        bed.close()
        bed.close()
    cleanup.remove(secrets.token_hex(4))
    for not_a_run in ("", "*", "../x", "0000000", "g0000000"):
        with pytest.raises(LabError, match="is not a run id"):
            cleanup.remove(not_a_run)


def test_namespaces_of_others_are_never_touched() -> None:
    other = f"other-{secrets.token_hex(4)}"
    subprocess.run([cleanup.tool("ip"), "netns", "add", other], check=True)
    try:
        with Testbed(pair()):
            pass
        assert (cleanup.NAMESPACES / other).exists()
    finally:
        subprocess.run([cleanup.tool("ip"), "netns", "delete", other], check=True)
