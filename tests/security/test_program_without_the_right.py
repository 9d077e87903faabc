"""A program of another user asks for what no rule allows it: it is refused in words, nothing is handed over, and the
refusal is on record."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator

import pytest
from outsiders import RuledNode, is_refused, needs_root
from processes import run_ringcast

import ringcast
from ringcast.control.requests import (
    DestroyTag,
    GetSettings,
    HoldBuffer,
    ListChannels,
    LoadModel,
    OpenTag,
    Publish,
    PullHistory,
    SetChannel,
    Watch,
)
from ringcast.control.service import Pull

pytestmark = needs_root

SOME = '[[rules]]\nuser = "nobody"\nmay = ["subscribe", "create"]\ntags = ["open/**"]\n'


@pytest.fixture(scope="module")
def node() -> Iterator[RuledNode]:
    made = RuledNode(SOME)
    yield made
    made.close()


@pytest.fixture(scope="module")
def owner(node: RuledNode) -> ringcast.Session:
    session = node.session()
    session.tag("closed/a").publisher().send(b"secret")
    return session


@pytest.mark.parametrize(
    ("request_", "action"),
    [
        (OpenTag(id=5, name="closed/a"), "subscribe"),
        (OpenTag(id=5, name="closed/new"), "create"),
        (DestroyTag(id=5, name="open/a"), "destroy"),
        (Publish(id=5, tag="open/a", incarnation=1, depth=1, capacity_bytes=4096), "publish"),
        (PullHistory(id=5, at="publisher", query=Pull(tag="closed/a", kind="latest")), "pull"),
        (HoldBuffer(id=5, buffer=1, tag="open/a", at="subscriber", depth=3), "pull"),
        (SetChannel(id=5, tag="open/a", transport="tcp"), "set"),
        (Watch(id=5, watch=1, kinds=["publisher"], pattern="**"), "subscribe"),
        (ListChannels(id=5), "set"),
        (GetSettings(id=5), "set"),
        (LoadModel(id=5), "set"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_it_is_refused_and_named(node: RuledNode, owner: ringcast.Session, request_: object, action: str) -> None:
    outsider = node.outsider()
    try:
        outsider.hello()
        assert is_refused(outsider.ask(request_), action)  # type: ignore[arg-type]
    finally:
        outsider.close()


@pytest.mark.parametrize("pattern", ["closed/a", "closed/*", "**", "@ringcast/*/channels"])
def test_no_ring_is_handed_over(node: RuledNode, owner: ringcast.Session, pattern: str) -> None:
    outsider = node.outsider()
    try:
        outsider.hello()
        assert is_refused(outsider.subscribe(pattern), "subscribe")
        assert outsider.rings == []
    finally:
        outsider.close()


def test_the_rule_to_add_is_in_the_error_and_other_tags_are_not_listed(
    node: RuledNode, owner: ringcast.Session
) -> None:
    owner.tag("open/b")
    session = node.foreign_session()
    with pytest.raises(ringcast.NotAllowed, match=r'user = "nobody", may = \["subscribe"\], tags = \["closed/a"\]'):
        session.subscribe("closed/a")
    assert {row.name for row in session.tags("**")} >= {"open/b"}
    assert not any(row.name.startswith("closed") for row in session.tags("**"))
    assert session.tag("open/b").subscribe() is not None


def test_refusals_are_on_record_and_nothing_of_a_message_is(
    node: RuledNode, owner: ringcast.Session, eventually: Callable[..., None]
) -> None:
    name = owner.status().node
    watching = owner.tag(f"@ringcast/{name}/audit").subscribe(start="earliest")
    session = node.foreign_session()
    with pytest.raises(ringcast.NotAllowed):
        session.tag("closed/a").history()
    record = watching.recv(30).data
    assert record["kind"] == "client"
    assert "nobody" in record["who"]
    lines = [json.loads(line) for line in node.audit.read_text().splitlines()]
    assert any(line["action"] == "subscribe" and line["what"] == "closed/a" for line in lines)
    assert all("secret" not in json.dumps(line) for line in lines)
    assert os.stat(node.audit).st_mode & 0o077 == 0
    shown = run_ringcast("audit", "--json", "--socket", node.socket_path)
    assert shown.returncode == 0, shown.stderr
    assert any(json.loads(line)["what"] == "closed/a" for line in shown.stdout.splitlines())
    assert "no rule allows it" in run_ringcast("audit", "--socket", node.socket_path).stdout


def test_a_user_without_any_rule_is_refused_at_hello() -> None:
    made = RuledNode('[[rules]]\nuser = "daemon"\nmay = ["subscribe"]\ntags = ["a"]\n')
    try:
        outsider = made.outsider()
        assert is_refused(outsider.hello(), "subscribe")
        outsider.close()
        with pytest.raises(ringcast.NotAllowed):
            made.foreign_session()
    finally:
        made.close()


def test_without_rules_other_users_cannot_even_connect() -> None:
    made = RuledNode()
    try:
        with pytest.raises(PermissionError):
            made.outsider()
    finally:
        made.close()
