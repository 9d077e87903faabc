"""Stages for other nodes: so many for one, so many for all, and a wish that is held twice counts once."""

from __future__ import annotations

from collections import Counter

import pytest

from ringcast.control.limits import MAX_STAGES_FOR_PEERS, MAX_STAGES_PER_PEER
from ringcast.daemon.rings.demand import StageSpec
from ringcast.daemon.stages.quota import StageQuota
from ringcast.errors import ResourceLimit


def spec(width: int) -> StageSpec:
    return StageSpec(1, (width, 1), 1, 0.0, True, False)


def test_one_node_has_so_many_and_others_still_get_theirs() -> None:
    refused: Counter[str] = Counter()
    quota = StageQuota(refused)
    for width in range(MAX_STAGES_PER_PEER):
        quota.take("b", spec(width))
    quota.take("b", spec(0))  # held already
    with pytest.raises(ResourceLimit, match="as many as one node may; scale at the subscriber"):
        quota.take("b", spec(1000))
    quota.take("c", spec(1000))
    assert refused == {"too many stages": 1}
    quota.release("b", spec(0))
    with pytest.raises(ResourceLimit):
        quota.take("b", spec(1000))
    quota.release("b", spec(0))
    quota.take("b", spec(1000))


def test_all_nodes_together_have_so_many_and_may_share() -> None:
    refused: Counter[str] = Counter()
    quota = StageQuota(refused)
    for width in range(MAX_STAGES_FOR_PEERS):
        quota.take(f"n{width // MAX_STAGES_PER_PEER}", spec(width))
    with pytest.raises(ResourceLimit, match="for other nodes"):
        quota.take("x", spec(1000))
    quota.take("x", spec(3))
    assert refused == {"too many stages": 1}


def test_streams_as_they_are_need_no_stage() -> None:
    quota = StageQuota(Counter())
    for _ in range(1000):
        quota.take("b", None)
    quota.release("b", None)
