"""Whenever the signal comes, a verb ends."""

import os
import signal
import sys
import threading
from collections.abc import Callable

import pytest

from ringcast.cli.parts.ending import terminable

PATIENCE_S = 30.0


class Finalised:
    """Gets the signal while it is finalised, where Python swallows what is raised."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass


def killed_by(what: Callable[[], object], error: Callable[[], BaseException] = KeyboardInterrupt) -> None:
    with terminable(error):
        what()
        threading.Event().wait(PATIENCE_S)


def test_a_signal_ends_the_block() -> None:
    with pytest.raises(KeyboardInterrupt):
        killed_by(lambda: os.kill(os.getpid(), signal.SIGTERM))


def test_a_signal_that_comes_while_an_object_is_finalised_ends_the_block() -> None:
    with pytest.raises(KeyboardInterrupt):
        killed_by(Finalised)


def test_it_may_end_with_another_error() -> None:
    with pytest.raises(SystemExit, match="143"):
        killed_by(Finalised, lambda: SystemExit(143))


def test_what_was_there_before_is_there_again() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM), sys.unraisablehook
    with terminable():
        pass
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM), sys.unraisablehook) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
