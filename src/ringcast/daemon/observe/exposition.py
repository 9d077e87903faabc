"""Metrics as Prometheus' text, the same bytes that `prometheus_client.generate_latest` makes, with less work.

The library makes an object of every sample and writes its labels anew, which for a thousand channels is most of a
scrape's time; and many objects set the garbage collector off, which holds everybody up. Here the samples of a row share
the text of its labels, and are entries in two lists. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

_go_number: Callable[[float], str] = floatToGoString
_PLAIN_BELOW = 1_000_000
"""From there on the library writes whole numbers with an exponent."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Rows:
    """A family of which rows of a listing have a sample each."""

    def __init__(self, kind: str, name: str, said: str) -> None:
        self.type = kind
        self.name = name
        self.documentation = said
        self._labels: list[str] = []
        self._values: list[float] = []

    def add(self, labels: str, value: float) -> None:
        """`labels` are what `label_text` made."""
        self._labels.append(labels)
        self._values.append(value)

    def lines(self) -> list[str]:
        name, _ = _named(self)
        return [f"{name}{labels} {_number(value)}\n" for labels, value in zip(self._labels, self._values, strict=True)]


def write(metrics: Iterable[Metric | Rows]) -> bytes:
    """Counters, gauges and infos, whose names are the classic ones; exemplars and times of creation are not written."""
    out: list[str] = []
    for metric in metrics:
        name, kind = _named(metric)
        said = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
        out.append(f"# HELP {name} {said}\n# TYPE {name} {kind}\n")
        if isinstance(metric, Rows):
            out += metric.lines()
        else:
            out += [f"{s.name}{label_text(s.labels)} {_number(s.value)}\n" for s in metric.samples]
    return "".join(out).encode()


def _named(metric: Metric | Rows) -> tuple[str, str]:
    if metric.type == "counter":
        return metric.name + "_total", "counter"
    if metric.type == "info":
        return metric.name + "_info", "gauge"
    return metric.name, metric.type


def _number(value: float) -> str:
    return f"{value}.0" if type(value) is int and 0 <= value < _PLAIN_BELOW else _go_number(value)


def label_text(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join([f'{name}="{_escaped(labels[name])}"' for name in sorted(labels)]) + "}"


@lru_cache(1024)  # most rows are of the same few nodes and transports
def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
