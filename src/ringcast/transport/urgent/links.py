"""Bandwidth of this machine's links that channels have reserved: one keeper in a process, because the queues are the
machine's.

The queues are the kernel's and outlive a daemon that is killed. So a file says that there are some, and is locked by
whoever keeps them: the next daemon that starts removes what is left.

The channel that takes another's place is there before that one goes, and both may not fit. Then it waits, and has what
the other one had in the same change of the queues that releases it.

Invariants: queues that somebody else set up are left alone; threads take turns, because a channel is opened by the
daemon's loop and closed by others.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

from ringcast.model import priority
from ringcast.transport.urgent import queues
from ringcast.transport.urgent.service_curves import has_hfsc

FOLDER = Path("/run/ringcast")
_PATIENCE_S = 10.0
_TIDY = ("noqueue", "pfifo_fast", "mq", "fq_codel", "fq", "pfifo")
"""What Linux puts on interfaces by itself."""

_CLASS = re.compile(  # not every version has it as JSON
    r"^class (?:htb (\S+) .*?\brate (\S+)|hfsc (\S+) .*?\brt m1 \S+ d \S+ m2 (\S+))", re.MULTILINE
)
Tc = Callable[[list[str], str], str]


class Refused(Exception):
    """In words why a bandwidth cannot be reserved."""


class Full(Refused):
    """It does not fit beside what others have."""


Stream = tuple[int, str]
"""A publisher's incarnation, and the address that its messages are sent to."""


class Reservation:
    """What one channel has of a link. `waiting` says why it has nothing yet: the channel whose place it takes is still
    there."""

    def __init__(self, dev: str, code: int, bps: int, stream: Stream | None = None) -> None:
        self.dev, self.code, self.bps, self.stream = dev, code, bps, stream
        self.waiting = ""


class Links:
    """`rate_bps` is what every link carries at most, whatever its card says; 0 asks the card. `share` is what of a link
    channels may reserve."""

    def __init__(
        self, tc: Tc | None = None, folder: Path = FOLDER, net: Path = Path("/sys/class/net"),
        hfsc: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """`hfsc` says whether the kernel has that queue; it is asked when something is reserved."""
        self.rate_bps = 0
        self.share = queues.MOST_SHARE
        self._tc = tc or _tc
        self._folder = folder
        self._net = net
        self._hfsc = hfsc
        self._held: dict[str, list[Reservation]] = {}
        self._classes: dict[str, dict[int, int]] = {}  # by interface: code points that have one, and their rates
        self._lock: int | None = None
        self._waiting: list[Reservation] = []
        self._turn = threading.RLock()

    def reserve(self, to: str, code: int, bps: int, stream: Stream | None = None) -> Reservation:
        """Of the link that packets to the address `to` leave by. What another channel of the stream has does not count:
        it is about to end, and until then the reservation waits. Raises Refused."""
        with self._turn:
            made = Reservation(self._dev_towards(to), code, bps, stream)
            try:
                self._check(made.dev, code, bps, ())
            except Full as exc:
                self._check(made.dev, code, bps, () if stream is None else (stream,))
                made.waiting = str(exc)
                self._waiting.append(made)
                return made
            self._change(made.dev, [*self._held.get(made.dev, []), made])
            if (found := self._rate(made)) < bps * 0.99:
                self.release(made)
                raise Refused(f"the kernel keeps {found} bit/s for its code point")
            return made

    def check(self, to: str, code: int, bps: int, replaced: Container[Stream] = ()) -> None:
        """Raises Refused when `reserve` would, once the channels of these streams are gone."""
        with self._turn:
            self._check(self._dev_towards(to), code, bps, replaced)

    def holds(self, stream: Stream) -> bool:
        """Whether a channel of the stream has a reservation in force."""
        with self._turn:
            return any(one.stream == stream for held in self._held.values() for one in held)

    def in_force(self, reservation: Reservation) -> int:
        """What the kernel has for the channel, in bits per second: its part of what the code point's class has; 0 when
        that cannot be read."""
        with self._turn:
            alike = [one for one in self._held.get(reservation.dev, []) if one.code == reservation.code]
            if reservation not in alike:
                return 0
            asked, found = sum(one.bps for one in alike), self._rate(reservation)
            # The kernel shows its rates rounded to the byte.
            return reservation.bps if found >= asked * 0.99 else found * reservation.bps // asked

    def release(self, reservation: Reservation) -> None:
        """Whoever waits for it has it from now on. What the kernel keeps all the same is removed by the next
        daemon."""
        with self._turn:
            if reservation in self._waiting:
                self._waiting.remove(reservation)
            dev, held = reservation.dev, self._held.get(reservation.dev, [])
            if reservation not in held:
                return
            left = [one for one in held if one is not reservation]
            try:
                heirs = self._heirs(reservation, left)
                self._change(dev, [*left, *heirs])
            except Refused:
                self._release_alone(dev, left)
                return
            for heir in heirs:
                heir.waiting = ""
                self._waiting.remove(heir)

    def _heirs(self, leaving: Reservation, left: list[Reservation]) -> list[Reservation]:
        heirs: list[Reservation] = []
        for one in self._waiting:
            if one.dev == leaving.dev and one.stream == leaving.stream:
                taken = sum(other.bps for other in (*left, *heirs))
                if taken + one.bps <= self.share * self._speed(one.dev):
                    heirs.append(one)
        return heirs

    def _release_alone(self, dev: str, left: list[Reservation]) -> None:
        try:
            self._change(dev, left)
        except Refused:
            self._held[dev] = left

    def _check(self, dev: str, code: int, bps: int, replaced: Container[Stream]) -> None:
        """Raises Refused."""
        if code == 0:
            raise Refused("packets of class normal cannot be told from others: give the channel a class or a DSCP")
        if dev not in self._held:
            self._look(dev)
        held = sum(one.bps for one in self._held.get(dev, []) if one.stream is None or one.stream not in replaced)
        link = self._speed(dev)
        if held + bps > self.share * link:
            left = max(0, round(self.share * link) - held) // 1000 * 1000
            raise Full(
                f"{priority.show_rate(bps)} does not fit: {dev} carries {priority.show_rate(link)}, of which "
                f"{priority.show_rate(left) if left else 'nothing'} is left to reserve"
            )

    def _rate(self, reservation: Reservation) -> int:
        """Of its code point's class, as the kernel has it; 0 when it cannot be read."""
        try:
            return _rates(self._tc([], f"class show dev {reservation.dev}")).get(queues.class_of(reservation.code), 0)
        except Refused:
            return 0

    def sweep(self) -> None:
        """Remove what a daemon left that was killed. Quietly does nothing where that is not allowed."""
        try:
            with self._turn:
                self._sweep()
        except Refused:
            return

    def _sweep(self) -> None:
        """Raises Refused."""
        if self._marker.exists() and self._keep():
            for dev in _ours(self._tc([], "qdisc show")):
                if dev not in self._held:
                    self._tc([f"qdisc delete dev {dev} root"], "")
            if not self._held:
                self._forget()

    # ---------------------------------------------------------------- the kernel

    @property
    def _marker(self) -> Path:
        return self._folder / f"queues-{os.stat('/proc/self/ns/net').st_ino}"

    def _change(self, dev: str, wanted: list[Reservation]) -> None:
        """Raises Refused; then what was reserved still is."""
        before = self._classes.get(dev, {})
        after = dict.fromkeys(before, 0) | _by_code(wanted) if wanted else {}
        if after and not self._keep():
            raise Refused("another daemon of this machine keeps the queues of its links")
        self._tc(queues.commands(dev, self._speed(dev), before, after, hfsc=self._hfsc()), "")
        if after:
            self._held[dev], self._classes[dev] = wanted, after
            return
        self._held.pop(dev, None)
        self._classes.pop(dev, None)
        if not self._held:
            self._forget()

    def _look(self, dev: str) -> None:
        """Raises Refused when somebody else's queues are on the interface."""
        for row in json.loads(self._tc([], f"qdisc show dev {dev}") or "[]"):
            if row.get("root") and row["kind"] not in _TIDY and row.get("handle") != f"{queues.HANDLE:x}:":
                raise Refused(f"{dev} has queues that somebody set up ({row['kind']} {row.get('handle')}): remove them")

    def _speed(self, dev: str) -> int:
        """Raises Refused."""
        if self.rate_bps:
            return self.rate_bps
        try:
            mbit = int((self._net / dev / "speed").read_text())
        except (OSError, ValueError):
            mbit = 0
        if mbit <= 0:
            raise Refused(f"{dev} does not say how fast it is: write limits.link_rate into ringcast.toml")
        return mbit * 1_000_000

    def _dev_towards(self, to: str) -> str:
        """Raises Refused."""
        try:
            host = _own_address(to)
        except OSError as exc:
            raise Refused(f"no way leads to {to}: {exc.strerror}") from exc
        for row in json.loads(self._tc([], "address") or "[]"):
            if any(one.get("local") == host for one in row.get("addr_info", ())):
                return str(row["ifname"])
        raise Refused(f"no interface has the address {host}")

    def _keep(self) -> bool:
        if self._lock is not None:
            return True
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            found = os.open(self._marker, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise Refused(f"{self._folder} cannot be written: {exc.strerror}") from exc
        try:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(found)
            return False
        self._lock = found
        return True

    def _forget(self) -> None:
        if self._lock is not None:
            self._marker.unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None


def _own_address(to: str) -> str:
    """This machine's address that packets to `to` would have. Raises OSError."""
    family, kind, _, _, address = socket.getaddrinfo(to, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as sock:
        sock.connect(address)  # of datagrams: nothing is sent
        return str(sock.getsockname()[0]).partition("%")[0]


def _by_code(held: list[Reservation]) -> dict[int, int]:
    found: dict[int, int] = {}
    for one in held:
        found[one.code] = found.get(one.code, 0) + one.bps
    return found


def _rates(shown: str) -> dict[str, int]:
    """Bits per second by class."""
    found = [(htb or hfsc, rate or curve) for htb, rate, hfsc, curve in _CLASS.findall(shown)]
    return {name: priority.rate_bps(rate) for name, rate in found}


def _ours(shown: str) -> list[str]:
    rows: list[dict[str, Any]] = json.loads(shown or "[]")
    return [row["dev"] for row in rows if row.get("root") and row.get("handle") == f"{queues.HANDLE:x}:"]


def _tc(lines: list[str], show: str) -> str:
    """Do all lines, or show something, as JSON where there is any. Raises Refused."""
    command = (
        ["ip", "-j", "address"] if show == "address" else ["tc", "-j", *show.split()] if show else ["tc", "-b", "-"]
    )
    if show.startswith("class"):
        command.remove("-j")
    try:
        done = subprocess.run(
            command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except FileNotFoundError as exc:
        raise Refused(f"there is no {exc.filename!r}: install iproute2") from exc
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise Refused(f"{command[0]} could not be run: {exc}") from exc
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        lacks = any("not permitted" in line for line in said)
        raise Refused("queues of links need CAP_NET_ADMIN" if lacks else f"tc: {said[0]}")
    return done.stdout


LINKS = Links(hfsc=has_hfsc)
"""Of this process."""
