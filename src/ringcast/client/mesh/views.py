"""Opening a view: the tag on which a proxy publishes what a policy leaves of another tag.

Whoever opens it need not know who makes it: the daemon of the proxy's node starts that (`ringcast.views.host`).
"""

from __future__ import annotations

from ringcast.client.attachment import Attachment
from ringcast.control.answers import TagOpened
from ringcast.control.requests import OpenTag
from ringcast.errors import QosMismatch
from ringcast.model.policy import OnChange, View, described
from ringcast.model.tag import TagAttributes

_WITH_NUMBERS = ("variables", "numpy")


def open_view(attachment: Attachment, view: View, attributes: TagAttributes) -> TagOpened:
    """Create or join the view's tag. `attributes` are those of the tag that it shows.

    Raises BadTagName (the name is too long for a view), QosMismatch, and what `Connection.call` does.
    """
    if isinstance(view.policy, OnChange) and view.policy.dead_band > 0 and attributes.codec not in _WITH_NUMBERS:
        raise QosMismatch(
            f"dead_band={view.policy.dead_band:g}", f"messages of codec {attributes.codec!r} are no numbers to compare",
            f"use a tag of codec {' or '.join(map(repr, _WITH_NUMBERS))}, or by='value' without a dead band",
        )  # fmt: skip
    requested = {
        "codec": "view", "schema": described(view, attributes.codec, attributes.schema), "depth": attributes.depth,
        "capacity_bytes": attributes.capacity_bytes, "max_wait_s": attributes.max_wait_s,
        "transport": attributes.transport, "priority": attributes.priority,
    }  # fmt: skip
    return attachment.connection.call(OpenTag(id=0, name=view.tag, requested=requested), TagOpened)
