"""Whether a model that was just trained may take the place of those in use.

They choose in the same environments, which none of them has learned from: the package's, or the lake's `adamant gate`
for metrics that the package has none of. Invariant: nothing is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.adapt import Chooser, ModelError
from ringcast.adapt.judging import Choose, Examples, refusal, shipped_examples, unseen_by
from ringcast.adapt.shipped import ruled, shipped_model
from ringcast.adapt.wanting import plain
from ringcast.model.carrier import METRICS
from ringcast.spark.experiments.unseen import GATE, unseen


def worse(model: dict[str, Any], in_use: Mapping[str, Chooser], examples: Examples | None) -> str:
    """Why a model is not to be exported, '' where it is no worse than any of those in use, by their names, in
    environments that none has learned from. Where none is in use, the rule is that daemons choose by without one. What
    daemons are to ask must look at what they measure. Without `examples` there is nothing to judge by."""
    new = Chooser.parse(msgspec.json.encode(model))
    if examples is None:
        return ""
    if missing := unseen_by(new, examples):
        return f"it looks at {', '.join(missing)}, which no daemon measures; there are {', '.join(examples.numbers)}"
    old: dict[str, Choose] = {name: one.choose for name, one in in_use.items() if not unseen_by(one, examples)}
    if not old and plain(new.metric)[0] in METRICS.values():
        old = {"the rule that is used without a model": ruled(new.metric, examples)}
    return next((why for name, one in old.items() if (why := refusal(new.choose, one, examples, name))), "")


def models_in_use(metric: str, *paths: Path) -> dict[str, Chooser]:
    """What the new model would replace, wherever it is: these files, and the package's model. What is no model, or is
    for something else, is replaced without a word."""
    found: dict[str, Chooser] = {}
    for path in dict.fromkeys(paths):
        try:
            chooser = Chooser.load(path)
        except (OSError, ModelError):
            continue
        if chooser.metric == metric:
            found[str(path)] = chooser
    shipped = shipped_model(metric)
    return {**found, "the model of the package": shipped} if shipped is not None else found


def judged_by(results: DataFrame, metric: str) -> Examples | None:
    """The package's environments by which models are let in, or else the lake's; None where neither has any."""
    base, in_order = plain(metric)
    if (found := shipped_examples(metric)) is not None:
        return found
    rows = results.where((F.col("experiment") == GATE) & (F.col("metric") == base))
    own = None if rows.isEmpty() else unseen(rows, base).of(in_order)
    return own if own is not None and own.environments else None
