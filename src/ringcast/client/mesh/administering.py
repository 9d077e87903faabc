"""How a session looks at the mesh and administers its channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringcast.client.attachment import Attachment
from ringcast.client.mesh import administration
from ringcast.control.answers import ChannelListing
from ringcast.control.requests import ListChannels
from ringcast.control.status import ChannelStatus, ClockStatus, NodeStatus
from ringcast.model.priority import Change

if TYPE_CHECKING:
    from ringcast.client.mesh.assigning import Assigned
    from ringcast.control.placing import Observation


class Administers:
    """What a session is besides."""

    _attachment: Attachment

    def set_channel(
        self, tag: str, *, node: str = "", subscriber: int = 0, at: str | None = None, transport: str | None = None,
        planned: bool = False, priority: str | None = None, dscp: str | int | None = None, sched: str | None = None,
        bandwidth: str | None = None,
    ) -> list[str]:  # fmt: skip
        """Decide, for everybody, where the proxies of a tag's subscribers sit, what carries the tag between nodes and
        how urgently, while messages flow: for all nodes that receive it, for `node` alone, or for one `subscriber`
        there, by its number, as long as it is there. None leaves one as it is, "auto" and "" leave it to the
        subscribers again. With `planned` a plan chose `at`, and the next plan may choose again; otherwise 'ringcast
        place' keeps it. `priority` is a class ("low", "normal", "high", "critical"), `dscp` another code point for
        its packets ("AF42"), `sched` the policy of its threads on both nodes ("fifo:30", "deadline:1ms/10ms"),
        `bandwidth` what is kept for it of the link ("5mbit"); on return they are in force (docs/priorities.md).
        Returns warnings, in words.

        Raises UnknownTag, QosMismatch (no such transport, node or subscriber; some asked for more than it promises),
        BrokenError (the node that keeps the tag does not answer), ValueError, DaemonUnavailable, ClosedError,
        ForkedError.
        """
        change = Change(priority, dscp if dscp is None else str(dscp), sched, bandwidth)
        return administration.set_channel(
            self._attachment.connection, tag, node, subscriber, at, transport, planned, change
        )

    def assign_priorities(self, pattern: str = "**", *, dry_run: bool = False) -> list[Assigned]:
        """Give every channel of these tags the class and schedule that its deadline asks for, the shortest first: that
        of its subscribers on the node, or where none gave one the declared period of its publishers. Channels with
        neither are left alone. A schedule that a kernel refuses is left out, and told (docs/admission.md). With
        `dry_run` nothing is set.

        Raises BadTagName, BrokenError, DaemonUnavailable, ClosedError, ForkedError.
        """
        from ringcast.client.mesh.assigning import assign  # few programs administer

        return assign(self, pattern, dry_run=dry_run)

    def nodes(self) -> list[NodeStatus]:
        """The nodes that this one knows, itself among them. Raises DaemonUnavailable, ClosedError, ForkedError."""
        return administration.nodes(self._attachment.connection)

    def clock(self, node: str) -> ClockStatus:
        """How far a node's clock is ahead, how that drifts, and how far it may be off; times of messages are translated
        by it. Raises BrokenError, ClocksDisagree (a common source is violated), DaemonUnavailable, ClosedError."""
        return administration.clock(self._attachment.connection, node)

    def channels(self, *, why: bool = True) -> list[ChannelStatus]:
        """The streams that come to this node and go from it; `choices` say how transports were chosen that were left to
        the mesh. Without `why` there are none of these, and no other node is asked: for programs that look often.

        Raises DaemonUnavailable, ClosedError, ForkedError.
        """
        return [row for page in self._channels(why) for row in page.rows]

    def observe(self, *, measured: bool = True) -> Observation:
        """The mesh as one sees it who places proxies: what every node measured, who subscribes to what, and where each
        proxy sits, by whose word and why. Without `measured` no other node is asked.

        Raises DaemonUnavailable, ClosedError, ForkedError, BrokenError (the daemon has no network).
        """
        return administration.observe(self._attachment.connection, measured=measured)

    def dropped(self) -> dict[str, dict[str, int]]:
        """{transport: {reason: count}} of what came to this node over the network that nobody had asked for. Raises
        DaemonUnavailable, ClosedError, ForkedError."""
        return self._channels(why=False)[-1].dropped

    def _channels(self, why: bool) -> list[ChannelListing]:
        return self._attachment.connection.call_pages(ListChannels(id=0, why=why), ChannelListing)
