"""Figure 1 of the LabMap paper: the parts add up to the whole, whichever times are known."""

from __future__ import annotations

import pytest

from ringcast.measure.stamps import Stamps


@pytest.mark.parametrize(
    ("kernel", "mirror", "names"),
    [
        (130, 140, ["change_to_send", "send_to_kernel", "kernel_to_mirror", "mirror_to_hand"]),
        (None, 140, ["change_to_send", "send_to_mirror", "mirror_to_hand"]),
        (None, None, ["change_to_send", "send_to_hand"]),
    ],
)
def test_parts_add_up(kernel: int | None, mirror: int | None, names: list[str]) -> None:
    parts = Stamps(100, 110, kernel, mirror, 190).parts_ns
    assert parts.pop("total") == 90
    assert list(parts) == names
    assert sum(parts.values()) == 90
