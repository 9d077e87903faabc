"""How well the pipelines find survivors, against the truth, and what clocks and loss do to it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from harness.rows import Row, at_least, plain
from harness.run import Run

LOSING, RECOVERING = "lossy+multicast:loss=3%", "lossy+nak:loss=3%"
PACE = 2.0  # times as fast as it happened: messages carry when that was
AHEAD_S = 0.05


def truth(run: Run, spark: Any, folder: Path) -> list[Row]:
    """How well survivors are found against the truth, and what clocks and loss do to it. Daemons and sensors are on
    nodes of a testbed, a recorder is at the base, and Spark works on what it wrote."""
    from ringcast.lab.testbed.network import unavailable
    from ringcast.rescue import HARD, Settings
    from ringcast.rescue.field import Field
    from ringcast.rescue.trials import SEEDS, recorded_trial, seeded

    what, seconds = "against the truth", 2.0 if run.quick else 6.0
    run.expect(what, 9)
    settings = Settings(seconds=seconds)
    rows = []
    for scene, some, target in (("the scene", settings, 0.95), ("a harder scene", HARD, None)):
        many = seeded(spark, dataclasses.replace(some, seconds=2.0), SEEDS)
        name = f"fuse, {scene}, {SEEDS} seeds, {many.survivors} survivors, no loss, synchronised"
        run.advance(what)
        rows += [
            at_least(f"{name}: recall of a survivor", many.recall, "share", target),
            plain(f"{name}: recall of a survivor, 95 % interval, from", many.low, "share"),
            plain(f"{name}: recall of a survivor, 95 % interval, to", many.high, "share"),
            at_least(f"{name}: precision", many.precision, "share", target),
        ]
    if reason := unavailable():
        run.notes.append(f"fuse against the truth is not measured: {reason}")
        return rows
    scores, losses = {}, {}
    with Field(settings) as field:
        for name, transport in {"calm": "nak", "lossy": LOSING, "recovered": RECOVERING}.items():
            run.advance(what)
            kept = field.record(folder / name, transport, PACE)
            scores[name] = recorded_trial(spark, kept.path, kept.mission)[0]
            losses[name] = 100.0 * (kept.sent - kept.received) / kept.sent
    for name, translated in {"apart": False, "translated": True}.items():
        with Field(settings, ahead_s=AHEAD_S, translated=translated) as field:
            run.advance(what)
            kept = field.record(folder / name, "nak", PACE)
            run.advance(what)
            scores[name] = recorded_trial(spark, kept.path, kept.mission)[0]
            if translated:
                error_us = abs(field.clocks()["eyes"].offset_ns - AHEAD_S * 1e9) / 1e3
    calm = scores["calm"]
    return [
        at_least("fuse, no loss, synchronised: recall", calm.recall, "share", 0.95),
        at_least("fuse, no loss, synchronised: precision", calm.precision, "share", 0.95),
        _lower("fuse, clocks 50 ms apart: recall, lower", scores["apart"].recall, calm.recall),
        at_least(
            "fuse, clocks 50 ms apart, measured and translated: recall", scores["translated"].recall, "share", 0.95,
            calm.recall,
        ),
        plain("how far off the clock was measured that is 50 ms ahead", error_us, "us"),
        _lower(f"fuse, 3 % of packets lost, {LOSING}: recall, lower", scores["lossy"].recall, calm.recall),
        plain(f"messages lost by {LOSING}", losses["lossy"], "%"),
        at_least(
            f"fuse, 3 % of packets lost, {RECOVERING}: recall", scores["recovered"].recall, "share", 0.95, calm.recall
        ),
        plain(f"messages lost by {RECOVERING}", losses["recovered"], "%"),
        *rows,
    ]  # fmt: skip


def _lower(name: str, value: float, reference: float) -> Row:
    return dataclasses.replace(plain(name, value, "share", reference), target=reference, met=value < reference)
