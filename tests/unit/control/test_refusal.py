import pytest

from ringcast import errors
from ringcast.control.answers import Refused
from ringcast.control.refusal import refusal


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        ("UnknownTag", {"name": "a"}),
        ("TagConflict", {"name": "a", "attribute": "codec", "existing": "json", "requested": "bytes"}),
        ("NoSpace", {"wanted_bytes": 3, "free_bytes": 2, "budget_bytes": 1}),
        ("DaemonRunning", {"socket_path": "/s", "pid": None}),
    ],
)
def test_a_refusal_is_raised_under_its_own_name_with_its_fields(error, fields):
    made = refusal(Refused(id=1, error=error, fields=fields))
    assert type(made) is getattr(errors, error)
    assert {name: getattr(made, name) for name in fields} == fields


@pytest.mark.parametrize("error", ["SystemExit", "Exception", "annotations", "__class__", "os", "", "RuntimeError"])
def test_a_name_from_elsewhere_is_a_plain_error(error):
    made = refusal(Refused(id=1, error=error, fields={"code": 3}))
    assert type(made) is errors.RingcastError
    assert "code=3" in str(made)


def test_fields_that_do_not_fit_are_a_plain_error():
    made = refusal(Refused(id=1, error="UnknownTag", fields={"nonsense": 1}))
    assert type(made) is errors.RingcastError
    assert "UnknownTag" in str(made)
