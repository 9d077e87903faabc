"""A channel has the class and the schedule that its admitted deadline asks for, without anybody setting one; a setting
comes before it, and when the deadline goes it goes too. No message is lost by that."""

from __future__ import annotations

from importlib import metadata

import pytest

from ringcast.admission.calibration import Calibration, save, this_machine
from ringcast.admission.model import Costs


@pytest.fixture
def mesh(make_mesh, tmp_path):
    here = this_machine(metadata.version("ringcast"))
    save(tmp_path / "ringcast" / "calibration.json", Calibration(here, Costs(), 0.0, "now", True))
    how = {"XDG_CACHE_HOME": str(tmp_path)}
    return make_mesh(2, a=how, b=how)


def test_a_channel_is_as_urgent_as_its_deadline(mesh, eventually):
    a, b = mesh
    pub = a.session.tag("t").publisher(period_s=0.05, max_bytes=64, jitter_s=0.0, on_excess="wait")
    eventually(lambda: b.knows("t"))
    plain = b.session.tag("t").subscribe(transport="tcp", reliable=True)

    def channel(node):
        return [(row.priority, row.bound) for row in node.session.channels() if row.tag == "t"]

    eventually(lambda: channel(b) == [("", "")])
    pub.send(b"1")
    urgent = b.session.tag("t").subscribe(transport="udp", deadline_s=0.09)
    eventually(lambda: {words.split()[0] for words, _ in channel(b) if words} == {"high"})
    eventually(lambda: {words for words, _ in channel(a)} == {words for words, _ in channel(b)})
    for _, bound in channel(b):  # where the kernel does not let it, the reason is said
        assert bound == "backed" or bound.startswith("not backed: ")
    pub.send(b"2")
    assert urgent.recv(timeout=5).data == b"2"
    a.session.set_channel("t", priority="low", sched="other")
    eventually(lambda: {words for words, _ in channel(b)} == {"low"})
    assert all("its deadline asks for high" in bound for _, bound in channel(b))
    a.session.set_channel("t", priority="", sched="")
    urgent.close()
    eventually(lambda: channel(b) == [("", "")])
    pub.send(b"3")
    assert [plain.recv(timeout=5).data for _ in range(3)] == [b"1", b"2", b"3"]
    pub.close()
