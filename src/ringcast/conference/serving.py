"""The conference's page behind a gateway; `describe` is what the page is told of this conference."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aiohttp import web

from ringcast.conference.media import MEDIA, URGENCIES, tag_name
from ringcast.daemon.access.tokens import Permit
from ringcast.gateway import Gateway
from ringcast.session import Session

RIGHTS = ("publish", "subscribe", "pull", "create", "set")
"""What a page of the conference may do with its tags; with `set` it sees where pictures are scaled."""
PAGE = Path(__file__).parent / "page"


def describe(conference: str, *, form: int, scheme: str, threshold: float) -> dict[str, Any]:
    """Raises BadTagName."""
    tag_name(conference, "audio")
    media = [
        {
            "name": medium.name, "quality": medium.quality, "reliable": medium.reliable, "options": medium.options,
        }
        for medium in MEDIA
    ]  # fmt: skip
    return {
        "conference": conference, "format": form, "scheme": scheme, "threshold": threshold, "media": media,
        "urgencies": URGENCIES,
    }  # fmt: skip


def gateway(
    session: Session, described: dict[str, Any], *, host: str, port: int, origins: Iterable[str] = (),
    tls: ssl.SSLContext | None = None,
) -> Gateway:  # fmt: skip
    """Whoever reaches it may use the conference's own tags, and no others. Raises ValueError."""

    async def settings(_: web.Request) -> web.Response:
        return web.json_response(described)

    return Gateway(
        session, host=host, port=port, origins=origins, folders={"/": PAGE}, tls=tls,
        routes=[web.get("/settings.json", settings)],
        anybody=Permit.limited(RIGHTS, *(tag_name(described["conference"], medium.name) for medium in MEDIA)),
    )  # fmt: skip
