"""Metrics as Prometheus' text, the same bytes that `prometheus_client.generate_latest` makes, with less work.

The library writes the labels of every sample anew, which for a thousand channels is most of a scrape's time. Here
samples that share one `labels` dictionary share its text. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

_number: Callable[[float], str] = floatToGoString
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def write(metrics: Iterable[Metric]) -> bytes:
    """Counters, gauges and infos, whose names are the classic ones; exemplars and times of creation are not written."""
    out: list[str] = []
    texts: dict[int, str] = {}
    kept: list[dict[str, str]] = []  # an id stands for its dictionary only while that lives
    for metric in metrics:
        name, kind = _named(metric)
        said = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
        out.append(f"# HELP {name} {said}\n# TYPE {name} {kind}\n")
        for sample in metric.samples:
            text = texts.get(id(sample.labels))
            if text is None:
                text = texts[id(sample.labels)] = _labels(sample)
                kept.append(sample.labels)
            out.append(f"{sample.name}{text} {_number(sample.value)}\n")
    return "".join(out).encode()


def _named(metric: Metric) -> tuple[str, str]:
    if metric.type == "counter":
        return metric.name + "_total", "counter"
    if metric.type == "info":
        return metric.name + "_info", "gauge"
    return metric.name, metric.type


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    written = (f'{name}="{_escaped(value)}"' for name, value in sorted(sample.labels.items()))
    return "{" + ",".join(written) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
