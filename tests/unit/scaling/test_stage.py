"""A stage that is behind leaves out what its publisher can do without, and says how many are missing."""

from __future__ import annotations

import numpy as np
import pytest

from ringcast import _core
from ringcast.codec import find
from ringcast.model.tag import TagAttributes
from ringcast.scaling.stage import Stage, StageSource

MESSAGES = 80
PICTURE = np.zeros((8, 8), np.uint8)


@pytest.mark.parametrize("reliable", [False, True])
def test_a_stage_that_is_behind_leaves_out_discardable_messages_first(reliable: bool) -> None:
    writer = _core.RingWriter(depth=256, capacity_bytes=1 << 20)
    encode = find("image").bind(None).encode
    assert encode is not None
    source = StageSource(writer.ring_fd, writer.bell_fd, 256, 1 << 20, writer.incarnation)
    stage = Stage(source, TagAttributes(codec="image"), (4, 4), reliable=reliable)
    for number in range(MESSAGES):
        writer.send(b"".join(bytes(part) for part in encode(PICTURE)), None, number % 2 == 1)
    # All were there before it began: the first turn takes a full batch of 64, the second what is left.
    looks = iter([False, False, True])
    stage.run(lambda: next(looks))

    reader = _core.RingReader(what="test")
    reader.attach(
        stage.writer.ring_fd, stage.writer.bell_fd, depth=256, capacity_bytes=1 << 20,
        incarnation=stage.writer.incarnation, start=0,
    )  # fmt: skip
    found = [reader.recv_nowait() for _ in range(MESSAGES if reliable else MESSAGES - 32)]
    assert stage.discarded == (0 if reliable else 32)
    assert [message.seq for message in found[-16:]] == list(range(64, 80))
    assert sum(message.lost for message in found) == (0 if reliable else 32)
    reader.close()
    stage.close()
    writer.close()
