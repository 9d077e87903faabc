"""docs/operating.md and the dashboard name metrics and settings that there are. Commands: `docs/test_commands.py`."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ringcast.daemon.access import tokens
from ringcast.daemon.observe.exposition import write
from ringcast.daemon.observe.metrics import families
from ringcast.daemon.operate.configuration import read

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "operating.md").read_text()
DASHBOARD = json.loads((DOCS / "grafana-dashboard.json").read_text())
_METRIC = re.compile(r"\bringcast_[a-z_]+(?:\{[a-z_,]+\}[a-z_]*)?")


def known() -> dict[str, set[str]]:
    """{metric as it is written: its labels}, of a snapshot that has everything."""
    path = Path(__file__).with_name("daemon") / "observe" / "test_exposition.py"
    spec = importlib.util.spec_from_file_location("exposition_snapshot", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, set[str]] = {}
    for metric in text_string_to_metric_families(write(families(module.snapshot())).decode()):
        suffix = "_total" if metric.type == "counter" else ""
        found[metric.name + suffix] = {label for sample in metric.samples for label in sample.labels}
    return found


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def expanded(text: str) -> list[str]:
    """`a_{b,c}_total` is two."""
    found = re.search(r"\{([a-z_]+(?:,[a-z_]+)+)\}(?=_)", text)
    if found is None:
        return [text]
    return [
        name for part in found[1].split(",") for name in expanded(text[: found.start()] + part + text[found.end() :])
    ]


def test_the_page_names_metrics_that_there_are() -> None:
    names = {name for written in _METRIC.findall(PAGE) for name in expanded(written)}
    plain = {re.sub(r"\{.*", "", name) for name in names}
    assert plain
    assert plain - known().keys() == set()


def test_the_page_names_every_metric() -> None:
    names = {re.sub(r"\{.*", "", name) for written in _METRIC.findall(PAGE) for name in expanded(written)}
    assert known().keys() - names - {"ringcast_uptime_seconds", "ringcast_tags", "ringcast_channels"} == set()


def test_the_dashboard_asks_for_metrics_and_labels_that_there_are() -> None:
    metrics = known()
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            for name, selector in re.findall(r"\b(ringcast_[a-z_]+)\{([^}]*)\}", target["expr"]):
                assert name in metrics, panel["title"]
                labels = set(re.findall(r"([a-z_]+)=", selector)) - {"instance", "job"}
                assert labels <= metrics[name] | {"tag", "direction"}, (panel["title"], labels)
            for shown in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                assert shown == "instance" or any(shown in labels for labels in metrics.values())
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.parametrize("text", [text for text in blocks("toml") if "[tokens]" not in text])
def test_its_configuration_is_one(text: str) -> None:
    assert read(text, "ringcast.toml").values


@pytest.mark.parametrize("text", [text for text in blocks("toml") if "[tokens]" in text])
def test_its_file_of_tokens_is_one(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    path.chmod(0o600)
    assert tokens.read(path)
