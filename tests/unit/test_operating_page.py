"""docs/operating.md and the dashboard keep to what there is: metrics, verbs, options, settings."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from ringcast.cli.program import VERBS, parser_of
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
    for metric in families(module.snapshot()):
        suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
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


@pytest.mark.parametrize("text", blocks("toml"))
def test_its_configuration_is_one(text: str) -> None:
    assert read(text, "ringcast.toml").values


def commands() -> list[str]:
    """Every `ringcast VERB ...` of the page, in blocks and in sentences."""
    found = [line for block in blocks("") for line in block.splitlines()]
    found += re.findall(r"`((?:/opt/ringcast/bin/)?ringcast [^`]+)`", PAGE)
    lines = (re.split(r"\s+#|\s\|\s|\s>\s", line)[0].strip() for line in found)
    return sorted(
        {re.sub(r"^/opt/ringcast/bin/", "", line) for line in lines if "ringcast " in line.split("/bin/")[-1]}
    )


@pytest.mark.parametrize("command", [line for line in commands() if line.startswith("ringcast ")])
def test_its_commands_are_understood(command: str) -> None:
    program, verb, *rest = shlex.split(command)
    assert program == "ringcast"
    if verb == "VERB":
        return
    assert verb in VERBS
    if rest and "--help" not in rest:  # a verb alone is only spoken of
        parser_of(verb).parse_args(rest)
