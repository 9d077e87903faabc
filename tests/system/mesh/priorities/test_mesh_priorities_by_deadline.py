"""`ringcast set --auto`: all channels of the mesh get the class and the schedule that their deadlines ask for."""

import json
import os
import subprocess
import sys
from importlib import metadata

import pytest

from ringcast.admission.calibration import Calibration, save, this_machine
from ringcast.admission.model import Costs
from ringcast.errors import QosMismatch
from ringcast.transport.urgent import scheduling


def granted(text):
    try:
        scheduling.check(text, "here")
    except QosMismatch:
        return False
    return True


def ringcast(node, *words):
    environment = {**os.environ, "RINGCAST_SOCKET": str(node.daemon.socket_path)}
    return subprocess.run(
        [sys.executable, "-m", "ringcast", *words], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def mesh(make_mesh, tmp_path):
    here = this_machine(metadata.version("ringcast"))
    save(tmp_path / "ringcast" / "calibration.json", Calibration(here, Costs(), 0.0, "now", True))
    how = {"XDG_CACHE_HOME": str(tmp_path)}
    return make_mesh(2, a=how, b=how)


def test_the_shortest_deadline_goes_first(mesh, eventually):
    a, b = mesh
    said = ringcast(a, "set", "--auto")
    assert said.returncode == 0, said.stderr
    assert "nothing to assign" in said.stdout
    declared = {"fast": 0.02, "slow": 2.0, "silent": None, "arm": 0.05}
    publishers = [
        a.session.tag(name).publisher(**({} if period is None else {"period_s": period, "max_bytes": 64}))
        for name, period in declared.items()
    ]
    eventually(lambda: all(b.knows(name) for name in declared))
    subscribers = [
        b.session.tag(name).subscribe(**({"deadline_s": 0.009, "transport": "udp"} if name == "arm" else {}))
        for name in declared
    ]
    eventually(lambda: all(row.subscribers == 1 for row in a.session.tags()) and len(a.session.tags()) == 4)

    document = json.loads(ringcast(a, "set", "--auto", "--dry-run", "--json").stdout)
    found = [
        (one["tag"], one["node"], one["deadline_s"], one["priority"], one["sched"]) for one in document["assigned"]
    ]
    assert found == [
        ("arm", "b", 0.009, "critical", "fifo:45"), ("fast", "b", 0.02, "high", "fifo:44"),
        ("slow", "b", 2.0, "normal", ""),
    ]  # fmt: skip
    assert all(not row.settings for row in a.session.tags())

    said = ringcast(b, "set", "--auto", "arm")
    assert said.returncode == 0, said.stderr
    assert "critical" in said.stdout
    allowed = granted("fifo:45")
    settings = {row.name: row.settings for row in a.session.tags()}
    assert settings["arm"]["b"].priority == ("critical fifo:45" if allowed else "critical")
    assert ("no schedule" in said.stderr) == (not allowed)
    assert not settings["fast"]
    (fast,) = a.session.assign_priorities("fast", dry_run=True)
    assert (fast.deadline_s, fast.sched) == (0.02, "fifo:44")  # its place among all of the mesh
    publishers[0].send(b"x")
    assert subscribers[0].recv(timeout=20).data == b"x"


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--auto", "--sched", "fifo:3"], "goes with no other"), (["--auto", "--node", "b"], "goes with no other"),
        ([], "say which tag"), (["t", "--dry-run"], "goes with --auto"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_said(words, match):
    done = subprocess.run(
        [sys.executable, "-m", "ringcast", "set", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert match in done.stderr
