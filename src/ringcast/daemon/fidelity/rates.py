"""Looks now and then how fast publishers send, while somebody wants a rate."""

from __future__ import annotations

from collections.abc import Callable

from ringcast.daemon.alarm import Alarm
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.stages.proxies import Stages
from ringcast.daemon.streams.outgoing import OutgoingChannels

PACE_S = 0.2


class Rates:
    """`outgoing` are the channels to other nodes, where there is a network."""

    def __init__(
        self, local: Local, stages: Stages, outgoing: OutgoingChannels | None, deliver: Callable[[list[Send]], None]
    ) -> None:
        self._local = local
        self._stages = stages
        self._outgoing = outgoing
        self._deliver = deliver
        self._alarm = Alarm(self._look)

    def later(self) -> None:
        self._alarm.within(PACE_S)

    def _look(self) -> None:
        self._deliver(self._local.sharing.follow_rates())
        self._stages.follow_rates()
        rates = self._local.sharing.has_rates or self._stages.has_rates
        if self._outgoing is not None:
            self._outgoing.follow_rates()
            rates = rates or self._outgoing.has_rates
        alive = {row.info.incarnation for row in self._local.table.all_publishers() if row.alive} if rates else set()
        self._local.sharing.paces.keep(alive)
        if rates:
            self.later()
