"""Ranges on the command line."""

from __future__ import annotations

import argparse

import pytest

from ringcast.cli.parts.scaling import rate, sizes


def test_one_value_or_from_the_least_to_the_most():
    assert rate("30") == 30
    assert rate("2..30") == (2, 30)
    assert sizes("320x240") == (320, 240)
    assert sizes("160x120..640x480") == ((160, 120), (640, 480))
    assert sizes("8x8..8x8") == ((8, 8), (8, 8))


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (rate, "30..2", "as 2..30"),
        (rate, "2..", "not a number above 0"),
        (sizes, "640x480..160x120", "from the least to the most"),
        (sizes, "640x100..160x200", "from the least to the most"),
        (sizes, "640..160", "not a size"),
    ],
)
def test_what_is_no_range_is_refused_with_the_remedy(kind, text, said):
    with pytest.raises(argparse.ArgumentTypeError, match=said):
        kind(text)
