"""What this process is when Spark runs it as a Python worker: kept for many tasks, and swept after each.

After every task Spark has its worker collect garbage, all generations of it. With pandas, pyarrow and numpy loaded that
takes longer than most tasks of a live query do, and finds nothing: what was imported stays.
"""

from __future__ import annotations

import gc
import itertools

_FREEZE_AT = (1, 8)
"""Tasks. In the first one most is imported, and a few later what other tasks of the same query need, too."""
_tasks = itertools.count(1)


def task_begun() -> None:
    """Called at the beginning of a task's own work: what is loaded is left out of all later collections."""
    if next(_tasks) in _FREEZE_AT:
        gc.collect()  # or what is garbage now would stay for good
        gc.freeze()
