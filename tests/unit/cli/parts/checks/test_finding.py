from __future__ import annotations

import errno
from importlib import metadata
from pathlib import Path

import pytest

from ringcast.cli.parts.checks import extras, kernel, limits, scheduling, software
from ringcast.cli.parts.checks.finding import Finding, healthy


def test_what_is_not_ok_has_a_remedy_and_what_is_ok_needs_none() -> None:
    with pytest.raises(ValueError, match="remedy"):
        Finding(name="x", state="limited", value="")
    with pytest.raises(ValueError, match="remedy"):
        Finding(name="x", state="ok", value="", remedy="Do this.")


def test_only_what_is_needed_and_missing_is_ill() -> None:
    missing = Finding(name="x", state="missing", value="", remedy="Get it.")
    needed = Finding(name="y", state="missing", value="", remedy="Get it.", needed=True)
    assert healthy([missing])
    assert not healthy([missing, needed])


@pytest.mark.parametrize("look", [extras.look, kernel.look, limits.look, scheduling.look, software.look])
def test_every_look_finds_something_on_any_machine(look: object) -> None:
    findings = look()  # type: ignore[operator]
    assert findings
    assert all(finding.value and (not finding.remedy or finding.remedy.endswith(".")) for finding in findings)


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [(0, "ok", "allowed"), (errno.EPERM, "limited", "not permitted"), (None, "limited", "could not be tried")],
)
def test_a_refused_policy_is_a_limit_with_its_reason(code: int | None, state: str, said: str) -> None:
    for judge in (scheduling._fifo, scheduling._deadline):
        finding = judge(code)
        assert finding.state == state
        assert finding.value.startswith(said)


def test_what_the_lab_and_spark_need_is_missing_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is said to be there that is not: with empty paths, no Java and no package of that name."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("ringcast.lab.testbed.cleanup.SEARCH", str(tmp_path))
    monkeypatch.setattr("ringcast.spark.jvm.java._bundled", lambda: None)

    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras.metadata, "version", absent)
    found = {finding.name: finding for finding in extras.look()}
    assert {name: finding.state for name, finding in found.items()} == dict.fromkeys(
        ["spark", "java", "lab network", "strace"], "missing"
    )
    assert "openjdk-17-jre-headless" in found["java"].remedy
    assert healthy(list(found.values())), "the core runs without them"
