"""What a stage takes on another node counts, as that node measured it: a publisher here is refused for what would be
too late there."""

from importlib import metadata

import ringcast
from ringcast.admission.calibration import Calibration, save, this_machine
from ringcast.admission.model import Cost, Costs


def test_a_publisher_is_refused_for_a_subscriber_on_a_slow_node(make_mesh, tmp_path, eventually):
    here = this_machine(metadata.version("ringcast"))
    how = {}
    for name, receive_s in (("a", 1e-6), ("b", 0.05)):
        costs = Costs(receive=Cost(fixed_s=receive_s))
        save(tmp_path / name / "ringcast" / "calibration.json", Calibration(here, costs, 0.0, "now", True))
        how[name] = {"XDG_CACHE_HOME": str(tmp_path / name)}
    a, b = make_mesh(2, **how)
    said = []

    def refused(deadline_s):
        """Whether a publisher on a is, with a subscriber on b that wants messages that soon."""
        with b.session.tag("t").subscribe(deadline_s=deadline_s):
            eventually(lambda: [row.deadline_s for row in a.session.tag("t").subscribers()] == [deadline_s])
            try:
                a.session.tag("t").publisher(period_s=0.5, max_bytes=64, jitter_s=0.0).close()
            except ringcast.AdmissionRefused as exc:
                said.append(str(exc))
                return True
            return False

    eventually(lambda: refused(0.02))  # as soon as a knows how slow b is
    assert "longest is receive (b) with 50 ms" in said[0]
    assert not refused(0.2)
