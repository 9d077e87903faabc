"""A network with its streams, proxies and loads: as SVG, and as lines of text for a terminal. Pure.

Both start at the publisher of the first tag and follow the routes from there: what is as many hops away stands in one
column. The same plan gives the same bytes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from html import escape

from ringcast.placement.case import Case
from ringcast.placement.plan import Plan

_COLUMN, _ROW, _MARGIN, _RADIUS = 190, 92, 70, 17
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.load{font-size:10px;fill:#555}.full{stroke:#d62728}"
    ".proxy{fill:#d9480f;font-weight:bold}.who{fill:#1c7ed6}"
)


def svg(plan: Plan, title: str = "") -> str:
    """A drawing of the whole network. Publishers are blue, nodes with proxies orange; the thicker a link the fuller."""
    case = Case(plan.problem)
    places = _columns(case)
    width = 2 * _MARGIN + _COLUMN * max((x for x, _ in places.values()), default=0) + 60
    height = 2 * _MARGIN + int(_ROW * max((y for _, y in places.values()), default=0))
    at = {node: (_MARGIN + _COLUMN * x, _MARGIN + _ROW * y) for node, (x, y) in places.items()}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{_STYLE}</style>",
        f'<text x="12" y="22" font-weight="bold">{escape(title)}</text>' if title else "",
        *_links(plan, case, at),
        *_nodes(plan, case, at),
        "</svg>\n",
    ]
    return "\n".join(part for part in parts if part)


def text(plan: Plan) -> list[str]:
    """The tree of routes from the first publisher, with loads; links that are not part of it follow."""
    case = Case(plan.problem)
    root = _root(case)
    tree = case.routes.tree(root)
    below: dict[int, list[int]] = defaultdict(list)
    for node, (parent, _) in enumerate(tree):
        if parent >= 0:
            below[parent].append(node)
    notes = _notes(plan, case)
    lines = [_titled(case, root, notes)]

    # Not recursive: a chain of a thousand nodes is a network too.
    waiting = [(child, "", child == below[root][-1]) for child in reversed(below[root])]
    while waiting:
        node, indent, last = waiting.pop()
        load = _load(plan, tree[node][1])
        lines.append(f"{indent}{'└' if last else '├'}─ {load} ─ {_titled(case, node, notes)}")
        deeper = indent + ("   " if last else "│  ")
        waiting += [(child, deeper, child == below[node][-1]) for child in reversed(below[node])]
    inside = {link for _, link in tree}
    rest = [e for e in range(len(plan.problem.links)) if e not in inside]
    lines += [f"also {plan.problem.links[e].a} ─ {_load(plan, e)} ─ {plan.problem.links[e].b}" for e in rest]
    return lines


def amount(load: float) -> str:
    """`950 B/s`, `12.5 kB/s`, `3.1 MB/s`."""
    for limit, prefix in ((1e3, ""), (1e6, "k"), (1e9, "M")):
        if abs(load) < limit:
            return f"{load / limit * 1e3:.4g} {prefix}B/s"
    return f"{load / 1e9:.4g} GB/s"


def _root(case: Case) -> int:
    return case.routes.number[case.problem.demands[0].publisher] if case.problem.demands else 0


def _columns(case: Case) -> dict[int, tuple[int, float]]:
    """Column and row of every node: children in the order of their parents, so that few links cross."""
    root = _root(case)
    tree = case.routes.tree(root)
    layer, found, x = [root], {root: (0, 0.0)}, 0
    while layer:
        x += 1
        layer = [node for parent in layer for node, (up, _) in enumerate(tree) if up == parent]
        found |= {node: (x, float(y)) for y, node in enumerate(layer)}
    tallest = max(y for _, y in found.values())
    counts: dict[int, int] = defaultdict(int)
    for column, _ in found.values():
        counts[column] += 1
    return {node: (c, y + (tallest - (counts[c] - 1)) / 2) for node, (c, y) in found.items()}


def _links(plan: Plan, case: Case, at: Mapping[int, tuple[float, float]]) -> Iterator[str]:
    most = max(plan.links, default=0.0) or 1.0
    for e, link in enumerate(plan.problem.links):
        (x1, y1), (x2, y2) = at[case.routes.number[link.a]], at[case.routes.number[link.b]]
        load = plan.links[e] if plan.links else 0.0
        full = math.isfinite(link.bandwidth) and load >= 0.95 * link.bandwidth
        colour, width = ("#d62728" if full else "#868e96" if load else "#dee2e6"), 1 + 7 * load / most
        yield (
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width:.2f}"/>'
            f'<text class="load" x="{(x1 + x2) / 2:g}" y="{(y1 + y2) / 2 - 6:g}" text-anchor="middle">'
            f"{escape(_load(plan, e))}</text>"
        )


def _nodes(plan: Plan, case: Case, at: Mapping[int, tuple[float, float]]) -> Iterator[str]:
    publishers = {demand.publisher for demand in plan.problem.demands}
    proxies, who = _notes(plan, case)
    for node, (x, y) in at.items():
        name = case.name(node)
        fill = "#ffd8a8" if proxies[node] else "#a5d8ff" if name in publishers else "#f1f3f5"
        edge = "#1c7ed6" if name in publishers else "#495057"
        yield (
            f'<circle cx="{x:g}" cy="{y:g}" r="{_RADIUS}" fill="{fill}" stroke="{edge}" stroke-width="2"/>'
            f'<text x="{x:g}" y="{y + 4:g}" text-anchor="middle">{escape(name)}</text>'
        )
        if proxies[node]:
            words = escape(_proxied(proxies[node]))
            yield f'<text class="proxy" x="{x:g}" y="{y - 22:g}" text-anchor="middle">{words}</text>'
        for i, line in enumerate(who[node][:3]):
            yield f'<text class="who" x="{x:g}" y="{y + 31 + 13 * i:g}" text-anchor="middle">{escape(line)}</text>'


def _notes(plan: Plan, case: Case) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """By node: the subscribers whose proxies it has, and who publishes or subscribes there."""
    proxies: dict[int, list[str]] = defaultdict(list)
    who: dict[int, list[str]] = defaultdict(list)
    for demand in plan.problem.demands:
        who[case.routes.number[demand.publisher]].append(f"publishes {demand.tag}")
        for one in demand.subscribers:
            who[case.routes.number[one.node]].append(f"{one.name}: {demand.tag}{_scaling(one.every, one.scaled_bytes)}")
    for placed in plan.streams:
        proxies[case.routes.number[placed.proxy]].append(placed.subscriber)
    return proxies, who


def _scaling(every: int, size: float | None) -> str:
    return (f" 1/{every}" if every > 1 else "") + (f" {size:g} B" if size is not None else "")


def _proxied(names: list[str]) -> str:
    return "proxy for " + (", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more")


def _titled(case: Case, node: int, notes: tuple[dict[int, list[str]], dict[int, list[str]]]) -> str:
    proxies, who = notes
    words = [*who[node][:3], *([f"and {len(who[node]) - 3} more"] if len(who[node]) > 3 else [])]
    if proxies[node]:
        words.append(f"[{_proxied(proxies[node])}]")
    return " ".join([case.name(node), *([f"({'; '.join(words)})"] if words else [])])


def _load(plan: Plan, e: int) -> str:
    load = amount(plan.links[e]) if plan.links else "-"
    capacity = plan.problem.links[e].bandwidth
    return load if math.isinf(capacity) else f"{load} of {amount(capacity)}"
