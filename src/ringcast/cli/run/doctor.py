"""`ringcast doctor`: what this machine allows, and how to get the rest."""

from __future__ import annotations

import argparse

from ringcast.cli.parts.access import add_socket
from ringcast.cli.parts.checks import extras, kernel, limits, network, node, scheduling, security, software
from ringcast.cli.parts.checks.finding import Finding, healthy
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.program import FAILED

HELP = "What this machine allows: kernel, limits, network, software, the daemon, security, Spark, lab. Changes nothing."

EPILOG = """\
Each line is ok, limited (it works, with less) or missing. One sentence says what you lose and how to change that. The
exit code is 1 when Ringcast cannot run here, else 0.

examples:
  ringcast doctor
  ringcast doctor --json | jq '.findings[] | select(.state != "ok")'
"""

_STYLES = {"ok": "green", "limited": "yellow", "missing": "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    add_socket(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    findings = [
        *software.look(), *kernel.look(), *limits.look(), *scheduling.look(), *network.look(),
        *node.look(args.socket), *security.look(args.socket), *extras.look(),
    ]  # fmt: skip
    good = healthy(findings)
    if output.json:
        output.document({"healthy": good, "findings": findings})
    elif output.terminal:
        _draw(findings)
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            output.line(f"{finding.state:8} {finding.name:{width}}  {finding.value}")
            if finding.remedy:
                output.line(f"{'':{8 + 1 + width}}  {finding.remedy}")
    if not output.json:
        output.line(_verdict(findings, good))
    return 0 if good else FAILED


def _verdict(findings: list[Finding], good: bool) -> str:
    if not good:
        names = ", ".join(finding.name for finding in findings if finding.needed and finding.state == "missing")
        return f"Ringcast does not run here without: {names}."
    less = sum(finding.state != "ok" for finding in findings)
    return f"Ringcast runs here; {less} thing(s) could be better." if less else "Ringcast runs here, with everything."


def _draw(findings: list[Finding]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    for finding in findings:
        told = Text(finding.value)
        if finding.remedy:
            told.append(f"\n{finding.remedy}", style="dim")
        table.add_row(Text(finding.state, style=_STYLES[finding.state]), Text(finding.name, style="bold"), told)
    Console().print(table)
