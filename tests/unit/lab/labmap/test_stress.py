"""The stress load's counter is read from outside, and what it printed before is not taken for new."""

from __future__ import annotations

import subprocess
import sys

from ringcast.lab.labmap.grid import Counter

PRINTS = """
import sys
for line in sys.stdin:
    for number in range(3):
        print(line.strip() + str(number), line.strip() + str(number), flush=True)
    print("end", file=sys.stderr, flush=True)
"""


def test_the_newest_line_counts() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PRINTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        counter = Counter(process)
        for said in (b"1", b"7"):
            process.stdin.write(said + b"\n")
            process.stderr.readline()  # all is in the pipe
            assert counter.newest() == (float(said) * 10 + 2, float(said) * 10 + 2)
        process.stdin.close()
        process.wait(60)
        assert counter.newest() == (72.0, 72.0), "one that has ended has done no more"
