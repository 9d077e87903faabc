"""Priorities by deadline: what was refused is not there, an earlier schedule neither."""

from ringcast.client.mesh.assigning import Assigned, _set
from ringcast.errors import QosMismatch


class Session:
    def __init__(self):
        self.has = {"priority": "low", "sched": "fifo:50"}

    def set_channel(self, tag, *, node="", priority=None, sched=None):
        if sched == "fifo:99":
            raise QosMismatch("fifo:99", "no", "less")
        self.has |= {name: value for name, value in (("priority", priority), ("sched", sched)) if value is not None}


def test_a_refused_schedule_leaves_no_earlier_one():
    session = Session()
    made = _set(session, Assigned(tag="t", node="b", deadline_s=0.1, priority="high", sched="fifo:99"))
    assert made.sched == ""
    assert "fifo:99" in made.refused
    assert session.has == {"priority": "high", "sched": ""}
