"""The report as one page that fetches nothing: contents by paper, every entry with its verdict, all rows."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ringcast.lab.measuring.report import Picture, Table
from ringcast.lab.measuring.rows import HEADS, Row, cells, number
from ringcast.lab.report.entries import BEYOND, PAPERS, why_missed
from ringcast.lab.report.gathering import Figures, Found, Ran, beyond
from ringcast.lab.report.judging import UNEXPLAINED, left_out, why_empty

Charts = Callable[[Picture, str], str]
"""A picture as HTML, interactive, as an element of that name."""

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#1f2937}
table{display:block;overflow-x:auto;border-collapse:collapse;margin:.5rem 0 1rem;font-size:13px}
td,th{border-bottom:1px solid #e5e7eb;padding:.2rem .6rem;text-align:left}
h2{margin-top:3rem;border-bottom:2px solid #2563eb}h3{margin-top:2rem}nav td a{text-decoration:none;color:#2563eb}
.yes{color:#15803d}.no{color:#b91c1c;font-weight:600}.said{color:#6b7280}code{background:#f3f4f6;padding:.1rem .3rem}
svg{max-width:100%;height:auto}details summary{cursor:pointer}
"""
_MUCH = 1.2
_NO_QUANTITY = ("times", "x", "r", "%")
"""Units of ratios: a ratio of those says nothing."""
_FEW = 12
"""So many rows of which nothing is asked are shown at once; more are folded away."""


def page(
    found: Sequence[Found], ran: dict[str, Ran], spark_rows: Sequence[dict[str, object]], charts: Charts, script: str
) -> str:
    """`spark_rows` are the latest figures as Spark reads them from the lake."""
    parts = [
        "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Ringcast: the papers and what was found</title><style>{_STYLE}</style>{script}",
        "<h1>The five papers, and what was found here</h1>", _machine(ran), _contents(found, ran),
        _better(ran), _missed(ran), _by_spark(spark_rows),
    ]  # fmt: skip
    for paper, title in PAPERS.items():
        parts.append(f"<h2 id=p{paper}>{paper} {html.escape(title)}</h2>")
        parts += [_entry(one, ran, charts) for one in found if one.entry.paper == paper]
    parts.append(_beyond(found, ran, charts))
    parts.append("<h2 id=all>All rows, by experiment</h2>")
    for name, one in ran.items():
        parts.append(f"<h3>{html.escape(name)}</h3>{_command(one.run.command)}")
        parts.append(_rows(one.rows, one.before))
        parts += [f"<p class=said>{html.escape(note)}</p>" for note in one.figures.notes]
    return "\n".join(parts)


def _machine(ran: dict[str, Ran]) -> str:
    machines = sorted({one.run.machine for one in ran.values()})
    versions = sorted({one.run.version for one in ran.values()})
    quick = "quick forms" if any(one.run.quick for one in ran.values()) else "full forms"
    said = f"{quick}, version {', '.join(versions)}, on {'; '.join(machines)}" if ran else "nothing was run"
    return f"<p class=said>{html.escape(said)}</p>"


def _contents(found: Sequence[Found], ran: dict[str, Ran]) -> str:
    lines = ["<nav><table><tr><th>paper<th>entry<th>title<th>here"]
    for one in found:
        entry = one.entry
        lines.append(
            f"<tr><td>{entry.paper}<td><a href='#{entry.key}'>{entry.label}</a>"
            f"<td>{html.escape(entry.title)}<td>{_verdict(one, ran)}"
        )
    for name, title in BEYOND.items():
        judged = [row.met for row in ran[name].rows if row.met is not None] if name in ran else []
        met = f"{sum(judged)} of {len(judged)} met" if name in ran else "not run"
        mark = "yes" if judged and all(judged) else "no"
        lines.append(
            f"<tr><td>-<td><a href='#beyond-{name}'>{name}</a><td>{html.escape(title)}"
            f"<td><span class={mark}>{met}</span>"
        )
    return "\n".join([*lines, "</table></nav>"])


def _verdict(one: Found, ran: dict[str, Ran]) -> str:
    state = ran.get(one.entry.experiment)
    if one.empty and state is not None and state.run.problem:
        return "<span class=no>failed</span>"
    if one.empty and one.entry.experiment and not one.entry.instead:
        left_out = state is not None and state.run.quick and one.entry.only_full
        why = "not run" if state is None else "in the full form" if left_out else "nothing found"
        return f"<span class=no>{why}</span>"
    missed = any(row.met is False for row in one.rows)
    return f"<span class={'no' if missed else 'yes'}>{html.escape(one.verdict)}</span>"


def _better(ran: dict[str, Ran]) -> str:
    """Rows that are met and better than what they are compared with: a paper's figure, a peer's, a floor's."""
    found = [(times, name, row) for name, one in ran.items() for row in one.rows if (times := _times_better(row))]
    if not found:
        return ""
    lines = [
        [name, row.name, number(row.value), row.unit, number(row.reference), f"{times:.3g}"]
        for times, name, row in sorted(found, key=lambda one: -one[0])
    ]
    heads = ("experiment", "what", "here", "unit", "compared with", "times better")
    return "<h2>What is better</h2>" + _table(Table("", heads, lines))


def _times_better(row: Row) -> float | None:
    """Than its reference; None where that is no more than _MUCH, or where nothing says which way is better."""
    if not row.met or not row.reference or not row.value or row.value == row.target or row.unit in _NO_QUANTITY:
        return None
    less_is_better = row.target is not None and row.value < row.target
    times = row.reference / row.value if less_is_better else row.value / row.reference
    return times if times > _MUCH else None


def _missed(ran: dict[str, Ran]) -> str:
    missed = [(name, row) for name, one in ran.items() for row in one.rows if row.met is False]
    failed = [one for one in ran.values() if one.run.problem]
    parts = ["<h2>What is not as it should be, and why</h2>"]
    parts += [
        f"<p class=no>{html.escape(one.run.experiment)} failed: {html.escape(one.run.problem)}</p>" for one in failed
    ]
    if missed:
        rows = [
            [name, *line[:-1], why_missed(name, row.name) or "not known"]
            for (name, row), line in zip(missed, cells([row for _, row in missed]), strict=True)
        ]
        parts.append(_table(Table("", ["experiment", *HEADS[:-1], "why"], rows)))
    elif not failed:
        parts.append("<p>Every row that asks for something is met.</p>")
    return "\n".join(parts)


def _by_spark(rows: Sequence[dict[str, object]]) -> str:
    if not rows:
        return ""
    names = ("experiment", "rows", "judged", "met", "changed")
    lines = [[str(row[name]) for name in names] for row in rows]
    heads = ("experiment", "figures", "judged", "met", "changed by more than 5 % since the run before")
    return "<h2>By Spark, from the lake</h2>" + _table(Table("", heads, lines))


def _entry(one: Found, ran: dict[str, Ran], charts: Charts) -> str:
    entry = one.entry
    parts = [f"<h3 id={entry.key}>{entry.label}: {html.escape(entry.title)}</h3>"]
    parts.append(f"<p class=said>The paper: {html.escape(entry.statement)}</p>")
    state = ran.get(entry.experiment)
    if state is not None:
        parts.append(_command(state.run.command))
    if one.rows:
        parts.append(_rows(one.rows, one.before))
    parts += [f"<p><b>{html.escape(table.title)}</b></p>{_table(table)}" for table in one.tables]
    parts += [charts(picture, f"{entry.key}-{picture.name}") for picture in one.pictures]
    parts += [_drawing(path) for path in one.drawn]
    if one.empty:
        parts.append(f"<p>{html.escape(why_empty(one, state) or UNEXPLAINED)}</p>")
    elif state is not None and (less := left_out(entry, state)):
        parts.append(f"<p class=said>{html.escape(less)}</p>")
    return "\n".join(parts)


def _beyond(found: Sequence[Found], ran: dict[str, Ran], charts: Charts) -> str:
    """Experiments that are in no paper, whole; of the others, what no entry shows, folded away."""
    left = beyond(ran, found)
    parts = ["<h2 id=beyond>Beyond the papers</h2>"]
    for name, title in BEYOND.items():
        parts.append(f"<h3 id=beyond-{name}>{html.escape(title)}</h3>")
        state = ran.get(name)
        if state is None:
            parts.append(f"<p>'ringcast lab run {name}' was not run, or is not there.</p>")
            continue
        parts.append(_command(state.run.command))
        if state.run.problem:
            parts.append(f"<p class=no>It failed: {html.escape(state.run.problem)}</p>")
        if state.rows:
            parts.append(_rows(state.rows, state.before))
        parts.append(_shown(name, left.pop(name, Figures()), charts))
    for name, figures in left.items():
        number_ = len(figures.tables) + len(figures.pictures)
        parts.append(f"<details><summary>{html.escape(name)}: {number_} more tables and pictures</summary>"
                     f"{_shown(name, figures, charts)}</details>")  # fmt: skip
    return "\n".join(parts)


def _shown(name: str, figures: Figures, charts: Charts) -> str:
    parts = [f"<p><b>{html.escape(table.title)}</b></p>{_table(table)}" for table in figures.tables]
    return "\n".join([*parts, *(charts(picture, f"beyond-{name}-{picture.name}") for picture in figures.pictures)])


def _command(command: str) -> str:
    return f"<p><code>{html.escape(command)}</code></p>"


def _drawing(path: Path) -> str:
    text = path.read_text()
    return text[text.find("<svg") :]


def _table(table: Table) -> str:
    lines = ["<table><tr>" + "".join(f"<th>{html.escape(head)}" for head in table.heads)]
    for cells_ in table.rows:
        last = cells_[-1] if cells_ else ""
        mark = f" class={last}" if last in ("yes", "no") else ""
        lines.append(f"<tr{mark}>" + "".join(f"<td>{html.escape(str(cell))}" for cell in cells_))
    return "\n".join([*lines, "</table>"])


def _rows(rows: Sequence[Row], before: Mapping[str, float]) -> str:
    """Those that are judged, and the others, which are folded away if they are many."""
    judged, others = ([row for row in rows if (row.met is None) is unjudged] for unjudged in (False, True))
    if len(others) <= _FEW:
        return _rows_at_once(rows, before)
    folded = f"<details><summary>{len(others)} more figures</summary>{_rows_at_once(others, before)}</details>"
    return (_rows_at_once(judged, before) if judged else "") + folded


def _rows_at_once(rows: Sequence[Row], before: Mapping[str, float]) -> str:
    """As `HEADS`, and the run before where there was one."""
    lines = cells(rows)
    if not any(row.name in before for row in rows):
        return _table(Table("", HEADS, lines))
    last = [number(before[row.name]) if row.name in before else "" for row in rows]
    wide = [[*line[:3], was, *line[3:]] for line, was in zip(lines, last, strict=True)]
    return _table(Table("", (*HEADS[:3], "the run before", *HEADS[3:]), wide))


def rows_of(ran: dict[str, Ran]) -> dict[tuple[str, str], Row]:
    """By experiment and name."""
    return {(name, row.name): row for name, one in ran.items() for row in one.rows}
