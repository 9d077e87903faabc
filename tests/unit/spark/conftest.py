"""What these tests open in this process, as a worker of Spark would, is closed after each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringcast.spark.tags import connections


@pytest.fixture(autouse=True)
def _worker(request: pytest.FixtureRequest) -> Iterator[None]:
    # Before the daemon ends, if there is one: a session that lost its daemon looks for it.
    if "daemon" in request.fixturenames:
        request.getfixturevalue("daemon")
    yield
    connections.close()
