"""The transport that docs/adding-a-transport.md shows is installed as it stands there, and carries streams."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from plug_ins import install

from ringcast.testing.transports import CHECKS
from ringcast.transport import find, registry

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "adding-a-transport.md").read_text()


def block(language: str) -> str:
    """The first of that language on the page, without its indentation."""
    found = re.search(rf"^( *)```{language}\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return "".join(line.removeprefix(found[1]) for line in found[2].splitlines(keepends=True))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    group, entry = block("toml").splitlines()
    assert group == '[project.entry-points."ringcast.transports"]'
    install(tmp_path, "my_package.transport", block("python"), "ringcast.transports", entry.replace('"', ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._entry_points.cache_clear()
    find.cache_clear()
    yield tmp_path
    registry._entry_points.cache_clear()
    find.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_package"]:
        del sys.modules[name]


@pytest.mark.parametrize("check", CHECKS)
def test_it_conforms(installed: Path, check: str) -> None:
    CHECKS[check](find("unix"))


def test_daemons_use_it_and_move_streams_to_and_from_it(installed: Path, make_mesh, eventually, take) -> None:
    how = {"PYTHONPATH": str(installed)}
    a, b = make_mesh(2, a=how, b=how)
    pub = a.session.publisher("x", depth=4096)
    eventually(lambda: b.knows("x"))
    sub = b.session.subscribe("x", transport="unix", reliable=True)
    for transport in ("nak", "unix", "tcp", "unix"):
        assert [row.transport for row in b.incoming(tag="x")]
        for _ in range(100):
            pub.send(b"x")
        sub.move(transport=transport)
        eventually(lambda transport=transport: [r.transport for r in b.incoming(tag="x")] == [transport])
    pub.send(b"end")
    got = take(sub, b"end")
    assert [msg.seq for msg in got] == list(range(401))
    assert sum(msg.lost for msg in got) == 0


def test_the_stage_on_the_other_page_is_the_one_that_is_compiled() -> None:
    page = (ROOT / "docs" / "adding-a-stage.md").read_text()
    found = re.search(r"^```cpp\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert found[1] in (ROOT / "native" / "tests" / "recovery" / "test_stage_of_your_own.cpp").read_text()
