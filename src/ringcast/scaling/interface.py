"""What a scaler is. The whole of it: implement this, register it under the entry point group `ringcast.scalers`, run
the suite in `ringcast.testing.scalers` against it, and `subscribe(size=...)` and `history(size=...)` can use it.

A scaler makes the bytes of one message smaller, looking at nothing but them, the tag's attributes and the size asked
for. Invariant: equal bytes give equal bytes, whichever process and node scales, and whatever was scaled before; so one
proxy can take the place of another. Must not know publishers, rings, or where it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ringcast.model.tag import TagAttributes

if TYPE_CHECKING:
    from typing_extensions import Buffer

Size: TypeAlias = tuple[int, int]
"""Width and height of images and arrays; samples per second and channels of audio."""

MAX_EXTENT = 2**20


class Scaler(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def codecs(self) -> frozenset[str]:
        """The codecs whose messages it understands."""

    def scale(self, payload: Buffer, attributes: TagAttributes, size: Size) -> bytes:
        """A message's bytes, scaled, in the same codec. `payload` is untrusted and not kept.

        Raises ScaleError, and nothing else.
        """

    def schema(self, schema: dict[str, Any] | None, size: Size) -> dict[str, Any] | None:
        """The schema of scaled messages, of a tag whose own is `schema`. Raises ScaleError when they can have none."""


def check_size(size: object) -> Size:
    """`size` as a pair of extents. Raises ValueError."""
    match size:
        case (int(width), int(height)) | [int(width), int(height)] if not isinstance(size, str | bytes):
            good = not isinstance(width, bool) and not isinstance(height, bool)
            if good and 1 <= width <= MAX_EXTENT and 1 <= height <= MAX_EXTENT:
                return int(width), int(height)
    raise ValueError(f"size is (width, height), each from 1 to {MAX_EXTENT}, not {size!r}")
