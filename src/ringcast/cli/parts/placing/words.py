"""Where a proxy sits and by whose word, what channels meet and how their transport was chosen, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ringcast.control.placing import SubscriberPlace
    from ringcast.control.status import ChannelEnvironment, ChannelStatus
    from ringcast.model.carrier import Chosen

_BY = {
    "subscriber setting": "an administrator set it for this subscriber",
    "plan": "a plan was applied ('ringcast place --live --apply')",
    "setting": "an administrator set it",
    "subscriber": "its subscriber asked for it",
    "tag": "the tag's attribute 'at' says so",
}


def why(one: SubscriberPlace) -> str:
    """A line of `ringcast channels --why`."""
    return f"{one.tag}, subscriber {one.node}#{one.id} ({wish(one)}): at {one.at}, because {_reason(one)}"


def carried(tag: str, asked: str, chosen: Chosen, now_ns: int) -> str:
    """The same of a transport that the mesh chose."""
    since = max(0, now_ns - chosen.since_ns) // 1_000_000_000
    if chosen.pinned:
        before = f"; it would be {chosen.transport}, chosen {since} s ago" if chosen.transport else ""
        return f"{tag}, {asked}: an administrator pinned {chosen.pinned}{before}"
    return f"{tag}, {asked}: by {chosen.transport} for {since} s, because of {chosen.why or 'nothing that was said'}"


def explained(rows: Iterable[ChannelStatus]) -> list[str]:
    """What incoming channels meet, and from what a transport was chosen for their tags."""
    lines = []
    for row in rows:
        if row.environment is not None:
            lines.append(f"{row.tag} from {row.node} by {row.transport}: {met(row.environment)}")
    choices = {(row.tag, choice.asked): choice for row in rows for choice in row.choices}
    for (tag, asked), choice in sorted(choices.items()):
        # An older daemon tells no values.
        values = [f"{_short(value)} {choice.unit}, " for value in choice.values] or [""] * len(choice.candidates)
        pairs = zip(choice.candidates, values, strict=False)
        ranked = "; ".join(f"{transport} ({value}{times:.2f})" for (transport, times), value in pairs)
        instead = f"pinned to {choice.pinned}; it would be chosen " if choice.pinned else ""
        by = f"{choice.environment}; {instead}by {choice.by}"
        lines.append(f"{tag}, {asked}: {by}; predicted, and times the best: {ranked}")
    return lines


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def met(one: ChannelEnvironment) -> str:
    loss = "its losses are hidden" if one.loss_percent is None else f"{one.loss_percent:.2g} % lost before repair"
    parts = [f"{one.receivers} receivers", loss]
    parts += [f"bursts of {one.burst:.1f}"] if one.burst is not None and one.burst > 1 else []
    parts += [f"{one.rate_hz:.3g} Hz of {one.payload_bytes:.0f} B"]
    parts += [f"there and back {one.round_trip_us:.0f} us"] if one.round_trip_us is not None else []
    parts += [f"{one.bandwidth_left_mbit:.4g} Mbit/s left"] if one.bandwidth_left_mbit is not None else []
    parts += [f"{one.cpu_left_percent:.0f} % of the cores idle"] if one.cpu_left_percent is not None else []
    return ", ".join(parts)


def wish(one: SubscriberPlace) -> str:
    wanted = one.wanted
    parts = [f"every {wanted.every}"] if wanted.every > 1 else []
    parts += [f"{wanted.rate_hz:g} a second"] if wanted.rate_hz else []
    parts += ["{}x{}".format(*wanted.size)] if wanted.size else []
    return ", ".join(parts) or "all"


def overridden(one: SubscriberPlace) -> str:
    return f"subscriber {one.node}#{one.id} asked for at={one.overrides!r} and is overridden: its proxy is at {one.at}"


def document(one: SubscriberPlace) -> dict[str, Any]:
    return {
        "tag": one.tag, "subscriber": f"{one.node}#{one.id}", "every": one.wanted.every, "size": one.wanted.size,
        "rate_hz": one.wanted.rate_hz, "at": one.at, "by": one.by, "asked_at": one.wanted.at,
        "overrides": one.overrides, "why": _reason(one), "keeper": one.keeper,
    }  # fmt: skip


def _reason(one: SubscriberPlace) -> str:
    though = f", though its subscriber asked for at={one.overrides!r}" if one.overrides else ""
    if one.by in _BY:
        return _BY[one.by] + though
    if one.by == "daemon":
        return f"node {one.keeper} keeps the tag and placed it: {one.why or 'it gave no reason'}"
    return f"nobody has decided yet: node {one.keeper} places it as soon as it knows how fast the tag's publishers send"
