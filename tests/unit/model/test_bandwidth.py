import pytest

from ringcast.model.priority import rate_bps, show_rate


@pytest.mark.parametrize(
    ("text", "bps"), [("5mbit", 5_000_000), ("500kbit", 500_000), ("2.5 Gbit/s", 2_500_000_000), ("8000bit", 8000)]
)
def test_as_text_and_as_a_number(text, bps):
    assert rate_bps(text) == bps
    assert rate_bps(show_rate(bps)) == bps


@pytest.mark.parametrize("text", ["", "5", "5mb", "fast", "0mbit", "1bit", "-5mbit", "9999gbit", None])
def test_what_is_none(text):
    with pytest.raises(ValueError, match="5mbit"):
        rate_bps(text)
