"""Every error that the daemon can answer with arrives as the same error."""

from __future__ import annotations

import pytest

from ringcast import errors
from ringcast.control.answers import Refused
from ringcast.control.framing import decode_reply_untrusted, encode
from ringcast.control.refusal import refusal, refuse

ERRORS = [
    errors.BadMessage("why"),
    errors.BadTagName("a b", "why"),
    errors.UnknownTag("a"),
    errors.TagConflict("a", "schema", None, {"x": [1]}),
    errors.TagInUse("a", 1, 2),
    errors.QosMismatch("this", "that", "do so"),
    errors.NoSpace(3, 2, 1),
    errors.ResourceLimit("what", "remedy"),
    errors.CorruptRing("why"),
    errors.ClosedError("subscription"),
    errors.BrokenError("node 'n2' is not in the mesh"),
    errors.HistoryError("it does not go back that far", seq=1, oldest=2, newest=3),
    errors.Empty(),
    errors.Overwritten(1, 2, 3),
    errors.NotYet(4, 3),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way(error: errors.RingcastError) -> None:
    refused = decode_reply_untrusted(encode(refuse(5, error)))
    assert isinstance(refused, Refused)
    assert refused.id == 5
    arrived = refusal(refused)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)


def test_long_values_are_cut() -> None:
    refused = refuse(1, errors.TagConflict("a", "schema", {"x": "y" * 60_000}, {"x": "z" * 60_000}))
    encode(refused)
    assert refused.fields["attribute"] == "schema"


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        ("UnknownTag", {"name": "a"}),
        ("TagConflict", {"name": "a", "attribute": "codec", "existing": "json", "requested": "bytes"}),
        ("NoSpace", {"wanted_bytes": 3, "free_bytes": 2, "budget_bytes": 1}),
        ("DaemonRunning", {"socket_path": "/s", "pid": None}),
    ],
)
def test_a_refusal_is_raised_under_its_own_name_with_its_fields(error: str, fields: dict[str, object]) -> None:
    made = refusal(Refused(id=1, error=error, fields=fields))
    assert type(made) is getattr(errors, error)
    assert {name: getattr(made, name) for name in fields} == fields


@pytest.mark.parametrize("error", ["SystemExit", "Exception", "annotations", "__class__", "os", "", "RuntimeError"])
def test_a_name_from_elsewhere_is_a_plain_error(error: str) -> None:
    made = refusal(Refused(id=1, error=error, fields={"code": 3}))
    assert type(made) is errors.RingcastError
    assert "code=3" in str(made)


def test_fields_that_do_not_fit_are_a_plain_error() -> None:
    made = refusal(Refused(id=1, error="UnknownTag", fields={"nonsense": 1}))
    assert type(made) is errors.RingcastError
    assert "UnknownTag" in str(made)
