"""Hosts that called and were turned away: not understood, or of another mesh.

Invariant: each host is logged once per reason, however often it calls; what is remembered is bounded.
"""

from __future__ import annotations

import logging

from ringcast.daemon.observe.complaints import Complaints, printable
from ringcast.model import addresses

logger = logging.getLogger("ringcast.mesh")

MAX_TURNED_AWAY = 64
"""Hosts that are remembered."""


class TurnedAway:
    def __init__(self, complaints: Complaints) -> None:
        self.reasons: dict[str, str] = {}
        """{host: why it was turned away}"""
        self.foreign = 0
        """Links refused because the other end is of another mesh."""
        self._complaints = complaints
        self._logged: set[tuple[str, str]] = set()

    def stranger(self, remote: str, reason: str) -> None:
        """Somebody dialled and sent nothing that we understand."""
        host = addresses.split(remote)[0]
        if self.reasons.get(host) != printable(reason):
            self._complaints.warning(host, "%s called and was turned away: %s", host, reason)
        if host in self.reasons or len(self.reasons) < MAX_TURNED_AWAY:
            self.reasons[host] = printable(reason)

    def unproven(self, address: str, reason: str, *, dialled: bool) -> None:
        """Who called, or whom we dialled, did not prove that it belongs to us."""
        if not dialled:
            self.stranger(address, reason)
            return
        if self.reasons.get(address) != printable(reason):
            self._complaints.warning(addresses.split(address)[0], "no link with %s: %s", address, reason)
        if address in self.reasons or len(self.reasons) < MAX_TURNED_AWAY:
            self.reasons[address] = printable(reason)

    def of_another_mesh(self, remote: str, mesh: str, reason: str, *, dialled: bool) -> None:
        self.foreign += 1
        host = addresses.split(remote)[0] if remote else "?"
        if (host, mesh) not in self._logged and len(self._logged) < MAX_TURNED_AWAY:
            self._logged.add((host, mesh))
            logger.warning("no link with %s: %s", remote, reason)
        if remote and not dialled and len(self.reasons) < MAX_TURNED_AWAY:
            self.reasons[host] = reason

    def accepted(self, address: str) -> None:
        self.reasons.pop(addresses.split(address)[0], None)
        self.reasons.pop(address, None)
