"""A history declares how often it pulls and how old what it gets may be; it is let in or refused, and counts while it
lasts."""

from __future__ import annotations

from importlib import metadata

import pytest

import ringcast
from ringcast.admission.calibration import Calibration, save, this_machine
from ringcast.admission.model import Cost, Costs


@pytest.fixture
def mesh(make_mesh, tmp_path):
    here = this_machine(metadata.version("ringcast"))
    costs = Costs(pull=Cost(fixed_s=0.01))
    save(tmp_path / "ringcast" / "calibration.json", Calibration(here, costs, 0.0, "now", True))
    how = {"XDG_CACHE_HOME": str(tmp_path)}
    return make_mesh(2, a=how, b=how)


@pytest.mark.parametrize("where", ["here", "there"])
def test_the_age_of_what_it_gets_is_promised_or_refused(mesh, eventually, where):
    a, b = mesh
    publisher = a.session.tag("t").publisher(period_s=0.5, max_bytes=64)
    eventually(lambda: b.knows("t"))
    tag = (a if where == "here" else b).session.tag("t")
    with pytest.raises(ringcast.AdmissionRefused, match=r"wants nothing older than 0\.4 s"):
        tag.history(period_s=1.0, max_age_s=0.4)  # the newest message may be half a second old
    with tag.history(period_s=1.0, max_age_s=5.0) as history:
        publisher.send(b"x")
        assert history.latest().data == b"x"
        assert tag.subscribers() == []
    publisher.close()


def test_those_that_were_let_in_leave_less_for_the_next_until_they_are_closed(mesh, eventually):
    a, b = mesh
    publisher = a.session.tag("t").publisher(period_s=0.5, max_bytes=64)
    eventually(lambda: b.knows("t"))
    held = []

    def admitted(node):
        try:
            held.append(node.session.tag("t").history(period_s=0.0125, max_age_s=5.0))
        except ringcast.AdmissionRefused:
            return False
        return True

    def fill_b():
        while admitted(b):
            assert len(held) <= 256  # each takes four fifths of a core

    def refused_by_a():
        if admitted(a):
            held.pop().close()
            fill_b()  # of two that were let in at once, on two nodes, the later one went: there may be room again
            return False
        return True

    assert admitted(b)
    fill_b()
    eventually(refused_by_a)  # as soon as it has heard of them
    for one in held:
        one.close()
    eventually(lambda: admitted(a))
    held[-1].close()
    publisher.close()


@pytest.mark.parametrize("wrong", [{"max_age_s": 1.0}, {"period_s": 0.0}, {"period_s": 1.0, "max_age_s": -1.0}])
def test_what_makes_no_sense_is_refused(mesh, wrong):
    with pytest.raises(ValueError, match=r"seconds above 0|needs period_s"):
        mesh[0].session.tag("t").history(**wrong)
