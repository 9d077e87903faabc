"""What a worker loaded is left out of the collections that Spark has it make after every task."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from ringcast.spark.tags.worker import task_begun

class Knot:
    pass

def tie():
    one = Knot()
    one.itself = one

counts = []
for _ in range(20):
    task_begun()
    counts.append(gc.get_freeze_count())
tie()
garbage = gc.collect()
print(counts[0] > 0, len(set(counts)) <= 2, garbage > 0)
"""


def test_what_is_loaded_is_set_aside_and_garbage_is_still_found() -> None:
    # In a process of its own: what is set aside there stays so.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]
