from __future__ import annotations

import argparse
import datetime as dt

import pytest

from ringcast.cli.parts import instants

NOW_NS = 1_777_629_600_123_456_789  # 2026-05-01T10:00:00.123456789 UTC


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instants.time, "time_ns", lambda: NOW_NS)


@pytest.mark.parametrize(
    ("text", "value_ns"),
    [
        ("2026-05-01T10:00", 1_777_629_600_000_000_000),
        ("2026-05-01T10:00:00.25", 1_777_629_600_250_000_000),
        ("2026-05-01T12:00+02:00", 1_777_629_600_000_000_000),
        ("2026-05-01T10:00Z", 1_777_629_600_000_000_000),
        ("09:59:30", 1_777_629_570_000_000_000),
        ("5s", NOW_NS - 5 * 10**9),
        ("250ms", NOW_NS - 250 * 10**6),
        ("1.5min", NOW_NS - 90 * 10**9),
        ("2h", NOW_NS - 7200 * 10**9),
        ("3d", NOW_NS - 3 * 86400 * 10**9),
        ("1777629600123456789", NOW_NS),
    ],
)
def test_ways_to_write_a_time(text: str, value_ns: int) -> None:
    assert instants.instant_ns(text) == value_ns


@pytest.mark.parametrize("text", ["", "yesterday", "5", "5 s", "25:00", "2026-13-01", "-5s", "1e3s", "12:00+99:00"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a time; write it as"):
        instants.instant_ns(text)


@pytest.mark.parametrize("text", ["1969-12-31T23:59", "99999999d", "9999999999999999999"])
def test_what_no_message_was_sent_at(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="before 1970 or too far away"):
        instants.instant_ns(text)


def test_a_date_is_of_utc_unless_it_says_otherwise() -> None:
    assert instants.instant("2026-05-01T10:00") == dt.datetime(2026, 5, 1, 10, tzinfo=dt.UTC)
    assert instants.instant("2026-05-01T10:00-01:00") == dt.datetime(2026, 5, 1, 11, tzinfo=dt.UTC)
