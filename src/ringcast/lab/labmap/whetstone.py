"""The paper's stress load: Whetstone's modules in an endless loop below everybody's priority, and its counter read from
outside: `python -m ringcast.lab.labmap.whetstone`. It prints how many thousand Whetstone instructions it has done, five
times a second, on a line each."""

from __future__ import annotations

import math
import os
import sys
import time

KILO = 10
"""Thousand Whetstone instructions a loop: the weights below are the benchmark's, for a tenth of its smallest loop."""
T, T1, T2 = 0.499975, 0.50025, 2.0


def cycle() -> None:
    """One loop: array elements, conditional jumps, integers, trigonometry, procedure calls, references, exp and log."""
    e = [1.0, -1.0, -1.0, -1.0]
    for _ in range(12):
        e[0] = (e[0] + e[1] + e[2] - e[3]) * T
        e[1] = (e[0] + e[1] - e[2] + e[3]) * T
        e[2] = (e[0] - e[1] + e[2] + e[3]) * T
        e[3] = (-e[0] + e[1] + e[2] + e[3]) * T
    j = 1
    for _ in range(34):
        j = 2 if j == 1 else 3
        j = 0 if j > 2 else 1
        j = 1 if j < 1 else 0
    j, k, m = 1, 2, 3
    for _ in range(21):
        j = j * (k - j) * (m - k)
        k = m * k - (m - j) * k
        m = (m - k) * (k + j)
        e[m - 2 & 3], e[k - 2 & 3] = float(j + k + m), float(j * k * m)
    x = y = 0.5
    for _ in range(3):
        x = T * math.atan(T2 * math.sin(x) * math.cos(x) / (math.cos(x + y) + math.cos(x - y) - 1.0))
        y = T * math.atan(T2 * math.sin(y) * math.cos(y) / (math.cos(x + y) + math.cos(x - y) - 1.0))
    for _ in range(90):
        _procedure(1.0, 1.0)
    x = 0.75
    for _ in range(9):
        x = math.sqrt(math.exp(math.log(x) / T1))


def _procedure(x: float, y: float) -> float:
    x1 = T * (x + y)
    y1 = T * (x1 + y)
    return (x1 + y1) / T2


def main() -> None:
    os.nice(19)
    done, told = 0, time.monotonic()
    while True:
        cycle()
        done += KILO
        now = time.monotonic()
        if now - told >= 0.2:
            told = now
            print(done, now, flush=True)


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(0)
