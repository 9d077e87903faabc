"""What `lab run conference` computes without a network: every row is met, and the oracle can tell."""

from __future__ import annotations

import numpy as np
import pytest
from lab_fakes import CountedSteps, named

from ringcast.conference.sound.blocks import TELEPHONE
from ringcast.conference.sound.mixing import BySpeakers
from ringcast.lab.conference import arithmetic
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Findings


def test_every_row_that_asks_for_something_is_met() -> None:
    rows = arithmetic.run(CountedSteps()).rows
    assert [row.name for row in rows if row.met is False] == []
    assert sum(row.met is True for row in rows) >= 12


def test_every_row_is_of_samples_that_are_in_the_lake() -> None:
    findings = arithmetic.run(CountedSteps())
    core = {"scheme": "speakers", "speakers": 8, "where": "core"}
    assert sum(one.configuration == core for one in findings.measured) == arithmetic._BLOCKS
    assert arithmetic.judged(sampled.InPython(findings.measured)) == findings.rows
    wrong = [one._replace(value=one.value + 2) if one.metric == "wrapped" else one for one in findings.measured]
    row = named(Findings(arithmetic.judged(sampled.InPython(wrong))), "samples that wrapped")
    assert (row.value, row.met) == (2 * arithmetic._BLOCKS, False)


def test_the_oracle_is_another_computation_that_notices_a_wrong_sample() -> None:
    block = np.full((2, 256), 100, np.int64)
    (mixed,) = arithmetic.oracle("speakers", [block], 2)
    assert set(mixed) == {100}
    wrong = BySpeakers(TELEPHONE).mix(list(block.astype(np.int32)))
    wrong[7] += 1
    assert (wrong != mixed).sum() == 1


@pytest.mark.parametrize("speaker", [1, 2])
def test_of_the_dialogue_no_talk_is_taken_for_silence(speaker: int) -> None:
    sound, talk = arithmetic.dialogue(speaker, seconds=20)
    assert len(sound) == 256 * len(talk)
    assert 0.1 < talk.mean() < 0.7
