"""Lines of the log that others cause: a few, then a sum, and nothing in them that a terminal would obey."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ringcast.control.limits import LOG_LINES_PER_MINUTE
from ringcast.daemon.observe.complaints import Complaints, printable
from ringcast.daemon.observe.rate_limit import WINDOW_NS

LOGGER = logging.getLogger("ringcast.test")


def test_a_few_lines_about_each_and_then_how_many_more(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(_complain(caplog))


async def _complain(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(LOGGER)
    now_ns = 0
    complaints._now_ns = lambda: now_ns  # type: ignore[method-assign]
    for number in range(LOG_LINES_PER_MINUTE + 412):
        complaints.warning("10.0.0.1", "link with %s: %s", "x", number)
    complaints.error("10.0.0.2", "link with %s: %s", "y", "bad")
    said = [record.getMessage() for record in caplog.records]
    assert said == [f"link with x: {number}" for number in range(LOG_LINES_PER_MINUTE)] + ["link with y: bad"]
    assert complaints.suppressed == 412
    caplog.clear()
    now_ns = WINDOW_NS
    complaints._tick()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == f"... and 412 more in the last minute; the last one: link with x: {LOG_LINES_PER_MINUTE + 411}"
    complaints.close()


def test_what_others_said_is_one_line_of_plain_text() -> None:
    assert printable("a\nb\x1b[2Jc\u202ed é") == "a\\nb\\x1b[2Jc\\u202ed é"
