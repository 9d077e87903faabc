"""Experiment results as columns: `gold.training` has one value per row and the configuration as JSON.

A configuration is a flat object. `transport` is what was chosen, as it is written elsewhere (`lateral:r=4,c=3`),
`updates` how long it was looked at; the other keys are the environment it was chosen for.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.tables.gold import TRAINING

RESULT = tuple(name for name in TRAINING.columns if name != "run_id")
"""What an experiment writes: the one schema for all of them."""

CHOICE = "transport"
NO_ENVIRONMENT = (CHOICE, "updates")


def of(results: DataFrame, experiment: str) -> DataFrame:
    return results.where(F.col("experiment") == experiment)


def opened(results: DataFrame) -> DataFrame:
    """With the configuration's keys in a map, and its `transport` apart from it."""
    keys = F.from_json("configuration", "map<string, string>")
    return results.withColumns(
        {
            "keys": F.map_filter(keys, lambda name, _: ~name.isin(*NO_ENVIRONMENT)),
            "transport": F.element_at(keys, CHOICE),
        }
    )
