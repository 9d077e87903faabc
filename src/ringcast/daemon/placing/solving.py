"""A problem in, places and reasons out, away from the daemon's loop.

Few free streams are placed in a thread by the rule that needs no solver (`ringcast.placement.solve.rule`). Whole
problems go to a child process with the solver HiGHS, which takes neither the daemon's lock nor its memory; where that
is not installed the child uses the rule, and says so.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ringcast.control.limits import MAX_WHY_CHARS
from ringcast.errors import RingcastError
from ringcast.placement import explain
from ringcast.placement.case import Case
from ringcast.placement.model import Problem
from ringcast.placement.plan import Plan
from ringcast.placement.solve import rule

LIMIT_S = 20.0
NICE = 10
MOST_EXPLAINED = 20_000
"""Pairs of a free stream and a node, times streams: beyond that, reasons are short."""
WITHOUT = "by the rule without a solver, because the extra 'placement' is not installed"


class Question(msgspec.Struct, frozen=True):
    """What a child process is given."""

    problem: Problem
    limit_s: float = LIMIT_S


class Answer(msgspec.Struct, frozen=True):
    """`places` by number and `whys` as sentences, by stream; without a plan they are empty and `problem` says why."""

    feasible: bool
    places: list[int] = []
    whys: list[str] = []
    problem: str = ""
    note: str = ""


class Failed(RingcastError):
    """The child process ended without an answer."""


class Solving:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "ringcast-place")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def few(self, case: Case) -> Answer:
        """By the rule, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, by_rule, case)

    async def whole(self, case: Case) -> Answer:
        """By the solver, in a process. Raises Failed."""
        try:
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "ringcast.daemon.placing.child", stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except OSError as exc:
            raise Failed(f"placing proxies: no process could be started ({exc})") from exc
        said = b""
        try:
            async with asyncio.timeout(2 * LIMIT_S):
                out, said = await child.communicate(msgspec.msgpack.encode(Question(case.problem)))
            return msgspec.msgpack.decode(out, type=Answer)
        except (TimeoutError, msgspec.MsgspecError, OSError) as exc:
            words = said.decode(errors="replace").strip().splitlines()
            raise Failed(f"placing proxies: {words[-1] if words else exc or 'no answer in time'}") from exc
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()


def by_rule(case: Case) -> Answer:
    return answer(case, rule.place(case))


def solved(question: Question) -> Answer:
    """With the solver; for a process of its own. Raises RingcastError."""
    from ringcast.placement.solve.optimise import optimise_case
    from ringcast.placement.solve.program import SolverMissing, SolverStopped

    os.nice(NICE)
    case = Case(question.problem)
    try:
        found = optimise_case(case, question.limit_s)
    except SolverMissing:
        return answer(case, rule.place(case), WITHOUT)
    except SolverStopped as exc:
        return answer(case, rule.place(case), f"by the rule without a solver: {exc}")
    return answer(case, rule.near(case, found) if found.feasible else found)


def answer(case: Case, found: Plan, note: str = "") -> Answer:
    if not found.feasible:
        return Answer(False, problem="; ".join(one.sentence for one in found.reasons) or "no plan fits", note=note)
    return Answer(True, list(found.places), [_why(case, found, index) for index in range(len(case.streams))], note=note)


def _why(case: Case, found: Plan, index: int) -> str:
    if case.streams[index].subscriber.proxy is not None:
        return ""
    short = len(case.streams) ** 2 * len(case.hosts) > MOST_EXPLAINED
    cost = f"{found.cost:.6g} bytes/s on all links" if math.isfinite(found.cost) else ""
    words = f"on {case.name(found.places[index])} ({cost})" if short else explain.sentence(case, found, index)
    return printable(words)


def printable(words: str) -> str:
    """As long as other nodes take it in."""
    return "".join(c if c.isprintable() else "?" for c in words)[:MAX_WHY_CHARS]
