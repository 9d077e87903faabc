"""A page of sections."""

from __future__ import annotations

import numpy as np

from ringcast.spark.page import Section, image, page


def test_a_page_escapes_what_others_wrote() -> None:
    text = page("<t>", [Section("a", "x < y", [], ["<h>"], [["<script>"]])])
    assert "<script>" not in text
    assert "x &lt; y" in text


def test_an_image_is_a_png_of_its_size() -> None:
    import base64

    shown = image(np.arange(12, dtype=np.uint16).reshape(3, 4), "what")
    data = base64.b64decode(shown.split("base64,")[1].split('"')[0])
    assert data.startswith(b"\x89PNG")
    assert data[16:24] == (4).to_bytes(4, "big") + (3).to_bytes(4, "big")
