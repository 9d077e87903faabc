"""Streams by plain udp of which nothing comes, though it is sent: a firewall drops datagrams, say.

Other transports have heartbeats, connections or repairs. Of plain udp only the next message shows that one was lost, so
where none comes at all, nothing does. While a stream is silent its sender's daemon is asked, over the link between
daemons, how far the stream is; seldom while nothing is sent. A stream that gets further there from one answer to the
next, and not here, is not heard. Invariant: while messages come nobody is asked, and no message costs anything for it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable

from ringcast.control import service
from ringcast.control.service import AskSent, SentSoFar
from ringcast.daemon.alarm import Alarm
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.interface import Mesh
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.streams.wanted import IncomingChannel
from ringcast.errors import RingcastError

logger = logging.getLogger("ringcast.daemon")

PLAIN = "udp"
LOOK_S = 1.0
MOST_LOOKS = 32
"""Between two questions about a stream of which nothing is sent."""
ANSWER_S = 2.0


class Silence:
    """`channels` are those that come here now."""

    def __init__(
        self, channels: Callable[[], Iterable[IncomingChannel]], mesh: Mesh, background: Background,
        complaints: Complaints,
    ) -> None:  # fmt: skip
        self._channels = channels
        self._mesh = mesh
        self._background = background
        self._complaints = complaints
        self._alarm = Alarm(self.look)
        self._streams: dict[int, Stream] = {}
        """By the channel's key."""

    def follow(self) -> None:
        """There are other channels than before."""
        if any(_is_plain(one) for one in self._channels()):
            self._alarm.within(LOOK_S)

    def close(self) -> None:
        self._alarm.close()

    def look(self) -> None:
        plain = {one.key: one for one in self._channels() if _is_plain(one)}
        self._streams = {key: self._streams.get(key) or Stream() for key in plain}
        asked: dict[str, list[int]] = defaultdict(list)
        for key, channel in plain.items():
            if self._streams[key].looks_silent(_came(channel)):
                asked[channel.via].append(key)
            elif not self._streams[key].silent:
                channel.ring.unheard = 0
        for node, keys in asked.items():
            channels = [plain[key] for key in keys[: service.MOST_KEYS]]
            self._background.start(f"how far streams of {node} are", self.ask(node, channels))
        if plain:
            self._alarm.within(LOOK_S)

    async def ask(self, node: str, channels: list[IncomingChannel]) -> None:
        """How far the sender is with these streams."""
        keys = [channel.key for channel in channels]
        try:
            answer = await self._mesh.request(node, service.SENT, service.encode(AskSent(keys=keys)), ANSWER_S)
            said = service.decode_untrusted(answer, SentSoFar)
        except (RingcastError, TimeoutError, OSError) as exc:
            logger.debug("node %s does not say how far its streams are: %s", node, exc)
            return
        if len(said.next_seqs) != len(keys):
            return
        for channel, next_seq in zip(channels, said.next_seqs, strict=True):
            stream = self._streams.get(channel.key)
            if stream is None or next_seq is None:
                continue
            behind = max(0, next_seq - channel.mirror.next_seq) // channel.ring.every
            channel.ring.unheard = stream.answered(_came(channel), behind)
            if channel.ring.unheard:
                text = "nothing comes by udp from node %s, though it sends %s: does a firewall drop datagrams?"
                self._complaints.warning(node, text, node, channel.row.info.tag)


class Stream:
    """What is known of one. Pure."""

    def __init__(self) -> None:
        self.silent = False
        self._came: object = None
        self._wait = self._left = 1
        self._behind: int | None = None
        self._unheard = 0

    def looks_silent(self, came: object) -> bool:
        """Whether its sender is to be asked, by what has come until now."""
        if came != self._came:
            self._came, self.silent = came, False
            self._wait = self._left = 1
            self._behind, self._unheard = None, 0
            return False
        self.silent = True
        self._left -= 1
        return self._left <= 0

    def answered(self, came: object, behind: int) -> int:
        """The sender has sent so many more than came. How many of them had time to come, and did not: all until the
        answer before, once there are more than then."""
        if came != self._came:
            return 0
        before, self._behind = self._behind, behind
        if before is not None and behind > before:
            self._unheard = max(before, 1)
        self._wait = self._left = 1 if behind else min(MOST_LOOKS, 2 * self._wait)
        return self._unheard


def _came(channel: IncomingChannel) -> object:
    """Other than before when anything came."""
    return channel.ring.came[0], channel.mirror.next_seq


def _is_plain(channel: IncomingChannel) -> bool:
    return channel.transport.partition(":")[0] == PLAIN
