"""How a session opens variables. Loads NumPy and what is built on it when they are first asked for, not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from ringcast.control.answers import TagOpened
from ringcast.control.requests import OpenTag
from ringcast.model.options import TagOptions
from ringcast.model.tag import check_name
from ringcast.tag import Tag

if TYPE_CHECKING:
    from ringcast.client.attachment import Attachment
    from ringcast.variables.mapping import Variables

CHUNK_BYTES = 1350
"""A chunk and its headers fit into one Ethernet frame."""


class OpensVariables:
    """What a session is besides."""

    _attachment: Attachment

    @property
    def attachment(self) -> Attachment:
        """The session's machinery, for what Ringcast itself builds on sessions."""
        return self._attachment

    def variables(
        self, name: str, *, period_s: float = 0.05, frame_s: float = 1.0, on_join: bool = True,
        chunk_bytes: int = CHUNK_BYTES, heads_up: bool = False, **options: Unpack[TagOptions],
    ) -> Variables:  # fmt: skip
        """Many named, typed values behind the tag `name`: a mapping. Add variables to own them; read and follow those
        of others.

        Of what this program owns, every `period_s` one packet has what changed (0: only `flush` sends), and every
        `frame_s` and, with `on_join`, whenever somebody joins, a packet has everything. Packets are cut into
        `chunk_bytes`. With `heads_up`, a cycle that has something to send says so a moment before; `ticks` does that
        anyway. Other options are the tag's. Raises as `tag` does, and ValueError.
        """
        from ringcast.variables.mapping import Variables

        self._attachment.check()
        requested: dict[str, Any] = {"codec": "variables", **options}
        request = OpenTag(id=0, name=check_name(name), requested=requested)
        tag: Tag[Any] = Tag(self._attachment, self._attachment.connection.call(request, TagOpened), None)
        return Variables(
            self._attachment, tag, period_s=period_s, frame_s=frame_s, on_join=on_join, chunk_bytes=chunk_bytes,
            heads_up=heads_up,
        )  # fmt: skip
