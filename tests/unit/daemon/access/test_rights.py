"""Which rights a request needs."""

from __future__ import annotations

from typing import Any

import pytest

from ringcast.control import requests as r
from ringcast.control.service import Pull
from ringcast.daemon.access.rights import Need, Rights, needs
from ringcast.errors import NotAllowed
from ringcast.security.rules import Rule, Rules, Who

ANA = Who(7, user="ana")


@pytest.mark.parametrize(
    ("request_", "need"),
    [
        (r.OpenTag(id=1, name="old"), Need("subscribe", "old", or_other=True)),
        (r.OpenTag(id=1, name="new"), Need("create", "new")),
        (r.OpenTag(id=1, name="new", create=False), Need("subscribe", "new")),
        (r.DestroyTag(id=1, name="a"), Need("destroy", "a")),
        (r.Publish(id=1, tag="a", incarnation=1, depth=1, capacity_bytes=1), Need("publish", "a")),
        (r.Subscribe(id=1, pattern="a/*", subscription=1), Need("subscribe", "a/*")),
        (r.Subscribe(id=1, pattern="a", subscription=1, role="history"), Need("pull", "a")),
        (r.PullHistory(id=1, at="publisher", query=Pull(tag="a", kind="latest")), Need("pull", "a")),
        (r.HoldBuffer(id=1, buffer=1, tag="a", at="subscriber", depth=1), Need("pull", "a")),
        (r.SetChannel(id=1, tag="a"), Need("set", "a")),
        (r.ListPublishers(id=1, tag="a"), Need("subscribe", "a", or_other=True)),
        (r.Watch(id=1, watch=1, kinds=["node", "publisher"], pattern="**"), Need("subscribe", "**", or_other=True)),
        (r.ListChannels(id=1), Need("set", "**")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_request_needs(request_: Any, need: Need) -> None:
    assert list(needs(request_, lambda name: name == "old")) == [need]


@pytest.mark.parametrize(
    "request_", [r.ListNodes(id=1), r.GetStatus(id=1), r.Watch(id=1, watch=1, kinds=["node"]), r.Bye(id=1)]
)
def test_what_everybody_may_who_may_connect(request_: Any) -> None:
    assert list(needs(request_, lambda name: False)) == []


def test_a_refusal_says_who_what_where_and_which_rule() -> None:
    rights = Rights("edge", Rules([Rule(users=(7,), may=("pull",), tags=("a",))], own=1))
    rights.check(ANA, r.ListPublishers(id=1, tag="a"), lambda name: True)
    rights.check(None, r.ListPublishers(id=1, tag="b"), lambda name: True)
    with pytest.raises(NotAllowed) as caught:
        rights.check(ANA, r.ListPublishers(id=1, tag="b"), lambda name: True)
    assert (caught.value.who, caught.value.action, caught.value.what) == ("user ana", "subscribe", "b")
    assert 'user = "ana", may = ["subscribe"], tags = ["b"]' in str(caught.value)
    assert rights.sees(ANA, "a")
    assert not rights.sees(ANA, "b")
