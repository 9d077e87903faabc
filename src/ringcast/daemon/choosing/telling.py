"""What the keeper of a tag tells of its choices: from what it chose, and what a look cost. Pure."""

from __future__ import annotations

from ringcast.adapt.environment import Cost, Environment
from ringcast.adapt.foretelling import UNITS, shown
from ringcast.adapt.names import chosen_as, keeps_order
from ringcast.adapt.ranking import Ranking
from ringcast.adapt.wanting import Wish
from ringcast.control.between.choosing import Explained, Lived
from ringcast.control.limits import MAX_WHY_CHARS
from ringcast.measure.relate import relate2
from ringcast.model.carrier import UNORDERED, Chosen

MOST_CANDIDATES, MOST_TIMES, MOST_VALUE = 32, 1e6, 1e15
"""That are told of."""


def asker(transport: str, keys: list[str], carriers: dict[str, str]) -> str:
    """For whom a stream is carried by that: whom it was chosen for, else whoever is promised as much order."""
    alike = [key for key in keys if key.endswith(UNORDERED) != keeps_order(transport)]
    mine = [key for key in (*alike, *keys) if carriers.get(key) == chosen_as(transport)]
    return next(iter((*mine, *alike, *keys)))


def explained(asked: str, chosen: Chosen, wish: Wish, around: Environment, ranking: Ranking) -> Explained:
    told = ranking.candidates[:MOST_CANDIDATES]
    best = told[0].score if told else 0.0
    times = [min(one.score / best, MOST_TIMES) if best > 0 else 0.0 for one in told]
    if ranking.costs:
        values = shown(told[0].transport, times, around, wish) if told else []
    else:
        values = [value for one in told for value in shown(one.transport, [1.0], around, wish)]
    return Explained(
        asked, chosen.transport, chosen.since_ns, chosen.why, printable(ranking.by), printable(str(around)),
        [(one.transport, often) for one, often in zip(told, times, strict=True)],
        [min(value, MOST_VALUE) for value in values], UNITS[wish.metric], chosen.pinned,
    )  # fmt: skip


def lived(
    tag: str, asked: str, transport: str, around: Environment, cost: Cost, ranking: Ranking, after: str, now_ns: int
) -> Lived:
    numbers = around.numbers()
    mine, best = ranking.score(chosen_as(transport)), min(ranking.scores, default=0.0)
    return Lived(
        taken_ns=now_ns, tag=tag, asked=asked, transport=transport, receivers=int(numbers.pop("receivers")), **numbers,
        messages=cost.messages, lost=cost.lost, delivered=cost.delivered, latency_mean=cost.latency_ms,
        relate2=relate2(cost.latency_ms, cost.messages + cost.lost, cost.messages) if cost.messages else 0.0,
        predicted=mine / best if mine is not None and best > 0 else 0.0, by=printable(ranking.by), changed_to=after,
    )  # fmt: skip


def printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:MAX_WHY_CHARS]
