from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.security.errors import BadInvitation
from ringcast.security.invitation import Invitation, read

GOOD = Invitation("10.0.0.1:7418", bytes(range(32)), bytes(16))


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=16, max_size=16), st.sampled_from(["a:1", "[::1]:7418"]))
def test_it_is_read_as_it_was_written(fingerprint, secret, address):
    made = Invitation(address, fingerprint, secret)
    assert read(f"  {made.word()}\n") == made


@given(st.text(max_size=80))
def test_anything_else_is_refused_in_words(text):
    for word in (text, "ringcast1-" + text):
        with pytest.raises(BadInvitation, match="Make another: ringcast secure invite"):
            read(word)


@pytest.mark.parametrize("word", [GOOD.word()[:-8], GOOD.word()[:40], "ringcast1-", "ringcast1-" + "A" * 600])
def test_half_of_one_is_refused(word):
    with pytest.raises(BadInvitation):
        read(word)
