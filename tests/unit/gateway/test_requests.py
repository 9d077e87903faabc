"""What a page asks: known requests with known fields; an answer can name the request that was wrong."""

from __future__ import annotations

import pytest

from ringcast.gateway import requests


def test_a_subscription_with_everything() -> None:
    found = requests.parse_untrusted(
        '{"op":"subscribe","id":1,"subscription":2,"pattern":"a/*","start":{"18446744073709551615":7},"every":2,'
        '"rate_hz":null,"size":[3,2],"reliable":true,"priority":4}'
    )
    assert isinstance(found, requests.Subscribe)
    assert found.begins() == {2**64 - 1: 7}
    assert (found.size, found.priority) == ((3, 2), 4)


@pytest.mark.parametrize("start", ["new", "latest", "earliest", 12])
def test_starts(start: object) -> None:
    text = '"new"' if start == "new" else f'"{start}"' if isinstance(start, str) else str(start)
    found = requests.parse_untrusted(f'{{"op":"subscribe","id":1,"subscription":2,"pattern":"a","start":{text}}}')
    assert isinstance(found, requests.Subscribe)
    assert found.begins() == start


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("", None), ("[]", None), ("{}", None), ('{"op":"nothing","id":3}', 3), ('{"op":"pull","id":4}', 4),
        ('{"op":"tag","id":"x","name":"a"}', None), ('{"op":"tag","id":true,"name":"a"}', None),
        ('{"op":"list","id":5,"what":"secrets"}', 5), ('{"op":"unwatch","id":6,"watch":1,"more":2}', 6),
        ("[" * 100_000, None), ('{"op":"subscribe","id":1,"subscription":2,"pattern":"a","start":"never"}', 1),
    ],
)  # fmt: skip
def test_others_are_refused_by_their_id(text: str, id: int | None) -> None:
    with pytest.raises(requests.Misasked) as caught:
        requests.parse_untrusted(text)
    assert caught.value.id == id
