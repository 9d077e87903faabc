"""Runs the demo: creates tags, starts processes, shows what can be seen, pulls, ends everybody, sees the daemon go.

Invariant: whatever happens, and when Ctrl-C comes, every process started here is gone when it returns.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import ringcast
from ringcast.demo.processes import Processes
from ringcast.demo.small.pulling import pull
from ringcast.demo.small.roles import PUBLISHERS, STARTER, SUBSCRIBERS, TAGS, Role
from ringcast.demo.small.scene import Pulled, Scene
from ringcast.demo.small.watching import Watcher
from ringcast.model.tag import matches

if TYPE_CHECKING:
    from ringcast.session import Session

_LOOK_S = 0.25
_START_S = 30.0
_DRAIN_S = 10.0
_IDLE_EXIT_S = 15.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How it went. `idle_exit_s`: how long after its last client the daemon ended; None if it did not."""

    seconds: float
    daemon_pid: int
    scene: Scene
    pulls: list[Pulled]
    idle_exit_s: float | None


Show = Callable[[Scene, float], None]
Tell = Callable[[str], None]


def run(directory: Path, seconds: float, show: Show, tell: Tell) -> Outcome:
    """Play for that long. `show` gets each scene and how long it has been; `tell` gets what happens, in sentences.

    Raises RingcastError (EndedEarly when one of its processes failed).
    """
    socket_path = str(directory / "daemon.sock")
    session = ringcast.connect(socket_path, program="demo")
    daemon = session.status().pid
    gone = os.pidfd_open(daemon)
    try:
        with session, Processes(directory) as processes:
            tell(f"no daemon was running here, so connecting started one: process {daemon}")
            watcher = _begin(session, processes, tell)
            live = _play(watcher, processes, seconds, show)
            pulls = pull(session)
            processes.end(_names(PUBLISHERS))
            scene = _drain(watcher)
            processes.end(_names(SUBSCRIBERS))
    finally:
        idle_exit_s = _wait_for_end(gone)
    return Outcome(
        seconds=seconds, daemon_pid=daemon, scene=scene.at_the_rates_of(live), pulls=pulls, idle_exit_s=idle_exit_s
    )


def _begin(session: Session, processes: Processes, tell: Tell) -> Watcher:
    """Subscribers first: who subscribes before a publisher comes misses nothing of it."""
    for name, attributes in TAGS.items():
        session.tag(name, **attributes)
    tell(f"starting {len(SUBSCRIBERS)} subscribers and {len(PUBLISHERS) + 1} publishers, each a process of its own")
    watcher = Watcher(session, processes)
    _start(session, processes, [STARTER])
    processes.end([STARTER.name])
    _start(session, processes, SUBSCRIBERS)
    _wait_until(lambda: len(watcher.look().subscribers) == len(SUBSCRIBERS), processes)
    _start(session, processes, PUBLISHERS)
    everybody = len(PUBLISHERS) + 1
    _wait_until(lambda: sum(p.sent > 0 for p in watcher.look().publishers.values()) == everybody, processes)
    return watcher


def _start(session: Session, processes: Processes, roles: Iterable[Role]) -> None:
    for role in roles:
        processes.launch(role.name, "ringcast.demo.small.actor", session.socket_path)


def _names(roles: Iterable[Role]) -> list[str]:
    return [role.name for role in roles]


def _wait_until(condition: Callable[[], bool], processes: Processes) -> None:
    deadline = time.monotonic() + _START_S
    while not condition():
        processes.check()
        if time.monotonic() > deadline:
            raise ringcast.BrokenError(
                f"the demo's processes did not start within {_START_S:g} s; is the machine busy?"
            )
        time.sleep(0.02)


def _play(watcher: Watcher, processes: Processes, seconds: float, show: Show) -> Scene:
    """Returns the last scene in which everybody was at work."""
    begin = time.monotonic()
    while True:
        elapsed = time.monotonic() - begin
        scene = watcher.look()
        show(scene, elapsed)
        if elapsed >= seconds:
            return scene
        processes.check()
        time.sleep(min(_LOOK_S, max(0.0, begin + seconds - time.monotonic())))


def _drain(watcher: Watcher) -> Scene:
    """The last scene, once those who can keep up have received all there is."""
    deadline = time.monotonic() + _DRAIN_S
    while True:
        scene = watcher.look()
        if time.monotonic() > deadline or all(
            scene.subscribers[role.name].received + scene.subscribers[role.name].lost >= _sent(scene, role.selects)
            for role in SUBSCRIBERS if role.name != "slow"
        ):  # fmt: skip
            return scene
        time.sleep(0.02)


def _sent(scene: Scene, selects: str) -> int:
    return sum(scene.publishers[role.name].sent for role in PUBLISHERS if matches(selects, role.selects))


def _wait_for_end(pidfd: int) -> float | None:
    """How long the daemon took to end by itself; None if it had to be told."""
    begin = time.monotonic()
    try:
        waiting = select.poll()
        waiting.register(pidfd, select.POLLIN)
        if waiting.poll(_IDLE_EXIT_S * 1000):
            return time.monotonic() - begin
        signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        return None
    finally:
        os.close(pidfd)
