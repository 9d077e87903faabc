"""A server of accumulators whose Java has ended is no mistake to report; anything else is."""

from __future__ import annotations

import pytest

from ringcast.spark.jvm.accumulators import _handled, end_without_a_word

accumulators = pytest.importorskip("pyspark.accumulators")


@pytest.mark.parametrize(
    ("mistake", "told"), [(EOFError(), False), (ConnectionResetError(), False), (ValueError("x"), True)]
)
def test_only_the_end_of_java_is_not_told(mistake: Exception, told: bool, capsys: pytest.CaptureFixture[str]) -> None:
    end_without_a_word()
    for kind in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        assert kind.handle_error is _handled
        try:
            raise mistake
        except Exception:
            kind.handle_error(kind.__new__(kind), None, ("", 0))
    assert ("Traceback" in capsys.readouterr().err) == told
