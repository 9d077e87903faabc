"""Policies and views as values: what may be asked for, and that equal wishes are one view."""

from __future__ import annotations

import pytest

from ringcast.model.policy import EveryCycle, OnChange, Periodic, check_policy, described, described_view, view


@pytest.mark.parametrize(
    "bad",
    [
        Periodic(0.0), Periodic(-1.0), Periodic(1e-9), Periodic(float("nan")), Periodic(1e9), OnChange(dead_band=-1.0),
        OnChange(least_s=2.0, longest_s=1.0), OnChange(by="never"), OnChange(longest_s=1e-9),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        check_policy(bad)


def test_something_else_is_no_policy() -> None:
    with pytest.raises(TypeError, match="Periodic"):
        check_policy("often")


def test_equal_wishes_have_one_name_and_others_another() -> None:
    one = view("plant", Periodic(0.1), ("b", "a", "a"), "auto", "n1")
    assert one.tag == view("plant", Periodic(0.1), ("a", "b"), "publisher", "n2").tag
    others = [
        view("plant", Periodic(0.2), ("a", "b"), "auto", "n1"),
        view("plant", Periodic(0.1), ("a",), "auto", "n1"),
        view("plant", OnChange(), ("a", "b"), "auto", "n1"),
        view("plant", Periodic(0.1), ("a", "b"), "node:n3", "n1"),
        view("other", Periodic(0.1), ("a", "b"), "auto", "n1"),
    ]
    assert len({one.tag, *(other.tag for other in others)}) == 6
    assert view("plant", EveryCycle(), (), "subscriber", "n1").at == "node:n1"
    assert view("plant", EveryCycle(), (), "auto", "n1", tag_at="node:n4").at == "node:n4"


def test_a_view_is_read_back_from_its_tag_and_nonsense_is_none() -> None:
    one = view("plant", OnChange(dead_band=1.0, longest_s=2.0), ("a/*",), "auto", "n1")
    assert described_view(described(one, "variables", None)) == one
    for bad in (None, {}, {"view": 3}, {"view": {"of": "x"}}, {"view": {"of": "x", "policy": {"type": "periodic"}}}):
        assert described_view(bad) is None
    fast = described(one, "variables", None)
    fast["view"]["policy"]["longest_s"] = 1e-9
    assert described_view(fast) is None
    with pytest.raises(ValueError, match="frame_s"):
        view("plant", EveryCycle(), (), "auto", "n1", frame_s=0.0)
