"""Every message survives the way there; nothing larger than a packet leaves."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from ringcast.control import answers, notices, requests, status
from ringcast.control.framing import MAX_PACKET_BYTES, decode_reply_untrusted, decode_request_untrusted, encode
from ringcast.control.service import Pull
from ringcast.errors import BadMessage
from ringcast.model.identity import Presence, PublisherInfo, SubscriberInfo
from ringcast.model.tag import TagAttributes

PUBLISHER = PublisherInfo(id=1, node="n", tag="a/b", incarnation=2**64 - 1, pid=4, user="u")
SUBSCRIBER = SubscriberInfo(id=1, node="n", pattern="a/*", pid=4, user="u")
COUNTERS = {"sent": 2**63}

REQUESTS: list[Any] = [
    requests.Hello(id=1, program="p"),
    requests.OpenTag(id=2**63, name="a", requested={"depth": 5, "schema": {"x": [1, None]}}),
    requests.DestroyTag(id=1, name="a", force=True),
    requests.Publish(id=1, tag="a", incarnation=2**64 - 1, depth=1, capacity_bytes=1),
    requests.Unpublish(id=1, publisher=1),
    requests.Subscribe(id=1, pattern="a/*", subscription=3, role="history"),
    requests.Subscribe(id=1, pattern="a/*", subscription=3, size=(320, 240), rate_hz=2.5),
    requests.StageUp(id=1, stage=2, incarnation=2**64 - 1, depth=1, capacity_bytes=1),
    requests.StageDown(id=1, stage=2, reason="no scaler"),
    requests.IntakeUp(id=1, intake=2**62, incarnation=2**64 - 1),
    requests.IntakeDown(id=1, intake=2**62, reason="no descriptors left"),
    requests.UseMailbox(id=1, subscription=3),
    requests.Watch(id=1, watch=4, kinds=["node", "publisher"], pattern="lab/**"),
    requests.Unwatch(id=1, watch=4),
    requests.Attached(id=1, subscription=3, ring=2**64 - 1),
    requests.Move(id=1, subscription=3, at="node:b", transport="tcp"),
    requests.SetChannel(id=1, tag="a", node="b", at="publisher"),
    requests.Unsubscribe(id=1, subscription=3),
    requests.Watch(id=1, watch=4, kinds=["node", "publisher", "subscriber"], pattern="a/*"),
    requests.Unwatch(id=1, watch=4),
    requests.ListTags(id=1),
    requests.ListPublishers(id=1, tag="a"),
    requests.ListSubscribers(id=1, tag="a"),
    requests.ListHistories(id=1, tag="a"),
    requests.PullHistory(id=1, at="publisher", query=Pull(tag="a", kind="latest")),
    requests.HoldBuffer(id=1, buffer=2, tag="a", at="node:b", depth=9),
    requests.DropBuffer(id=1, buffer=2),
    requests.ListNodes(id=1),
    requests.ListChannels(id=1),
    requests.ObserveMesh(id=1),
    requests.LoadModel(id=1),
    requests.ReportRefusal(id=1, who="10.0.0.7", action="enter", reason="a wrong token", count=3),
    requests.GetStatus(id=1),
    requests.GetSettings(id=1),
    requests.Bye(id=1),
]
REPLIES: list[Any] = [
    answers.Welcome(id=1, node="n", daemon_pid=1),
    answers.TagOpened(id=1, name="a", tag_id=2, attributes=TagAttributes()),
    answers.Published(id=1, info=PUBLISHER, subscribers=0),
    answers.Done(id=1),
    answers.MeshObserved(id=1, piece=b"x", more=True),
    answers.TagListing(
        id=1,
        rows=[
            status.TagStatus(
                name="a", id=1, attributes=TagAttributes(), publishers=1, subscribers=1, sent=1, bytes=1, last_sent_ns=1
            )
        ],
    ),
    answers.PublisherListing(
        id=1, rows=[status.PublisherStatus(info=PUBLISHER, alive=True, counters=COUNTERS, last_sent_ns=1)], more=True
    ),
    answers.SubscriberListing(id=1, rows=[status.SubscriberStatus(info=SUBSCRIBER, counters=COUNTERS, latency=[1, 2])]),
    answers.NodeListing(
        id=1,
        rows=[
            status.NodeStatus(name="n", state="here", me=True, linked=False, incarnation=1, control=("h:1",), data=())
        ],
    ),
    answers.ChannelListing(
        id=1,
        rows=[
            status.ChannelStatus(
                direction="in", node="n", tag="a", incarnation=1, transport="udp", every=4, reliable=False,
                messages=1, bytes=None, lost=0, counters={"late": 1},
            )
        ],
        dropped={"udp": {"stranger": 1}},
    ),
    answers.Status(
        id=1, node="n", pid=1, version="1", uptime_s=1.5, clients=1, tags=1, rings=1, budget_bytes=1, used_bytes=1,
        bad_messages=0, until_idle=False,
    ),
    answers.SettingListing(id=1, rows=[status.SettingStatus(key="name", value='"n"', origin="default")], more=True),
    answers.HistoryPulled(id=1, size=1, answer=b"x"),
    notices.Presences(
        watch=4,
        rows=[
            Presence(kind="node", came=True, node="n"),
            Presence(kind="publisher", came=True, node="n", publisher=PUBLISHER),
            Presence(kind="subscriber", came=False, node="n", subscriber=SUBSCRIBER),
        ],
        anew=True,
    ),
    answers.Refused(id=1, error="UnknownTag", fields={"name": "a"}),
    notices.RingUp(
        subscription=1, info=PUBLISHER, attributes=TagAttributes(), depth=1, capacity_bytes=1, born_after=True,
        ring=1, next_seq=0,
        alive=False,
    ),
    notices.RingDown(subscription=1, incarnation=2**64 - 1),
    notices.RingDown(subscription=1, incarnation=5, end=2**40),
    notices.StreamEnded(subscription=1, incarnation=2**64 - 1, end=2**40),
    notices.RingPaced(subscription=1, ring=2**64 - 1, pace=3),
    notices.FidelityNow(subscription=1, rate_hz=4.5, size=(320, 240), why="3 of 4 messages were lost"),
    notices.StageWanted(
        publisher=1, stage=2, attributes=TagAttributes(), size=(2, 3), every=4, first_seq=5, passed=1, reliable=True,
        ring=6, depth=7, capacity_bytes=8,
    ),
    notices.StageUnwanted(publisher=1, stage=2),
    notices.IntakeWanted(subscription=1, intake=2**62, channel=b"\x80"),
    notices.IntakeUnwanted(subscription=1, intake=2**62),
    notices.TagGone(name="a"),
    notices.RightTaken(why=answers.Refused(id=0, error="NotAllowed", fields={"who": "u"}), publisher=3),
    notices.RingAnew(publisher=3),
    notices.SubscriberCount(publisher=1, count=2),
    notices.Presences(watch=4, rows=[Presence(kind="publisher", came=True, node="n", publisher=PUBLISHER)], anew=True),
]  # fmt: skip


def test_every_message_is_tried_here() -> None:
    assert {type(message) for message in REQUESTS} == set(get_args(requests.Request))
    assert {type(message) for message in REPLIES} == set(get_args(answers.Answer)) | set(get_args(notices.Notice))


@pytest.mark.parametrize("message", REQUESTS, ids=lambda message: type(message).__name__)
def test_requests_survive(message: Any) -> None:
    assert decode_request_untrusted(encode(message)) == message


@pytest.mark.parametrize("message", REPLIES, ids=lambda message: type(message).__name__)
def test_replies_survive(message: Any) -> None:
    assert decode_reply_untrusted(encode(message)) == message


def test_nothing_larger_than_a_packet_leaves() -> None:
    with pytest.raises(BadMessage, match="of one packet"):
        encode(requests.Hello(id=1, program="x" * MAX_PACKET_BYTES))


@pytest.mark.parametrize(
    "packet",
    [b"", b"\xc1", b"\x80", b"\x81\xa1t\xa4nope", b"\x91" * 5000 + b"\x00", bytes(MAX_PACKET_BYTES + 1)],
    ids=["empty", "reserved", "no kind", "unknown kind", "deep", "long"],
)
def test_what_is_no_message_is_a_bad_message(packet: bytes) -> None:
    for decode in (decode_request_untrusted, decode_reply_untrusted):
        with pytest.raises(BadMessage):
            decode(packet)
