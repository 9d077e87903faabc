"""Which pages may use a gateway: its own, listed ones, and nobody else's, by whatever name they came."""

from __future__ import annotations

import pytest

from ringcast.gateway.access import origins

LISTED = {"https://dash.example.org"}


def refused(
    host: str, origin: str | None = None, site: str | None = None, mode: str | None = None, scheme: str = "http"
) -> bool:
    return origins.refusal(scheme, host, origin, site, mode, LISTED) is not None


@pytest.mark.parametrize("host", ["127.0.0.1:7480", "localhost:7480", "[::1]:7480", "10.0.0.2", "app.localhost"])
def test_a_page_of_the_gateway_itself(host: str) -> None:
    assert not refused(host)
    assert not refused(host, f"http://{host}", "same-origin", "websocket")
    assert not refused(host, f"https://{host}", scheme="https")


def test_pages_of_others() -> None:
    assert refused("127.0.0.1:7480", "http://evil.example")
    assert refused("127.0.0.1:7480", "http://127.0.0.1:8080")
    assert refused("127.0.0.1:7480", "https://127.0.0.1:7480")
    assert refused("127.0.0.1:7480", "http://localhost:7480")
    assert refused("127.0.0.1:7480", "null")
    assert refused("127.0.0.1:7480", "http://[")
    assert refused("127.0.0.1:7480", None, "cross-site", "no-cors")
    assert refused("127.0.0.1:7480", None, "same-site", "no-cors")


def test_a_link_on_another_site_may_lead_here() -> None:
    assert not refused("127.0.0.1:7480", None, "cross-site", "navigate")


def test_a_name_that_was_made_to_point_here() -> None:
    assert refused("evil.example:7480", "http://evil.example:7480", "same-origin", "websocket")
    assert refused("evil.example:7480")
    assert refused("", None)
    assert refused("[", None)


def test_listed_origins() -> None:
    assert not refused("127.0.0.1:7480", "https://dash.example.org", "cross-site", "cors")
    assert not refused("dash.example.org", "https://dash.example.org", scheme="https")


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("http://Example.org:80/", "http://example.org"), ("https://example.org:443", "https://example.org"),
        ("http://[::1]:8080", "http://[::1]:8080"), ("https://example.org:80", "https://example.org:80"),
    ],
)  # fmt: skip
def test_origins_as_browsers_write_them(given: str, normal: str) -> None:
    assert origins.normal(given) == normal


@pytest.mark.parametrize("given", ["example.org", "ftp://example.org", "http://", "http://a/path", "http://a:x"])
def test_what_is_no_origin(given: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        origins.normal(given)
