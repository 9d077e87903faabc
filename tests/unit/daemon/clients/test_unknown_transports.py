"""A transport that nobody has is refused when it is named, by a daemon without a network too."""

from __future__ import annotations

from typing import Any

import pytest

from ringcast.control.answers import TagOpened
from ringcast.control.requests import OpenTag, Subscribe


@pytest.mark.parametrize(
    ("transport", "words"),
    [
        ("pigeon", "there are only"),
        ("auto:speed", "relate2, p99, deadline"),
        ("nak:tempo=3", "tempo"),
        ("auto", "relate2"),
    ],
)
def test_a_transport_that_is_none_is_refused_without_a_network_too(lab: Any, transport: str, words: str) -> None:
    lab.open(1, "a")
    for request in (
        OpenTag(id=2, name="x", requested={"transport": transport}),
        Subscribe(id=2, pattern="a", subscription=3, transport=transport),
    ):
        refused = lab.answer(1, request)
        assert refused.error == "QosMismatch"
        assert words in str(refused)
    assert isinstance(lab.answer(1, OpenTag(id=4, name="x", requested={"transport": "auto:p99"})), TagOpened)
