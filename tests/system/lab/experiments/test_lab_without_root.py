"""Without rights or tools there is no testbed, and one sentence says what to do instead."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ringcast.cli.experiment import lab
from ringcast.lab.testbed import cleanup
from ringcast.lab.testbed.cleanup import LabUnavailable
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import pair

# Gives up root only after the imports: another user may not be allowed to read this directory.
AS_NOBODY = """
import os
from ringcast.lab.testbed.cleanup import LabUnavailable
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.topology import pair
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    with Testbed(pair()):
        print("built")
except LabUnavailable as exc:
    print(exc)
"""


def test_a_user_without_rights_is_told_the_other_way() -> None:
    said = subprocess.run([sys.executable, "-c", AS_NOBODY], capture_output=True, text=True, check=True).stdout
    assert said.count("\n") == 1
    assert "need root (CAP_NET_ADMIN and CAP_SYS_ADMIN missing)" in said
    assert "'ringcast up --nodes 3'" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="without root, the rights are missing before the tools are")
@pytest.mark.parametrize(
    ("present", "missing", "package"), [([], "ip", "iproute2"), (["ip", "tc"], "iptables", "iptables")]
)
def test_a_missing_tool_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: list[str], missing: str, package: str
) -> None:
    for name in present:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(cleanup, "SEARCH", str(tmp_path))
    sentence = f"the testbed needs '{missing}': install {package}"
    if unavailable() and "need root" in (unavailable() or ""):
        pytest.skip(unavailable() or "")
    assert sentence in (unavailable() or "")
    bed = Testbed(pair())
    with pytest.raises(LabUnavailable, match=sentence), bed:
        pass
    parser = argparse.ArgumentParser()
    lab.configure(parser)
    with pytest.raises(LabUnavailable, match=sentence):
        lab.run(parser.parse_args(["net", "up"]))
