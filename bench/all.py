"""Every question, one after the other, in one report."""

from __future__ import annotations

import ask
import fan_out
import idle
import pull
import round_trip
import throughput
from harness.command import main

QUESTIONS = (round_trip, ask, throughput, fan_out, pull, idle)

if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", [question.measure for question in QUESTIONS]))
