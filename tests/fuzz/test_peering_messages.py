"""Whatever bytes arrive from another daemon, decoding gives a message or BadMessage; and whatever message arrives, the
mesh's core survives it."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, get_args

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.control import limits
from ringcast.control import peering as p
from ringcast.daemon.mesh.core.cluster import Cluster
from ringcast.daemon.mesh.core.events import Connect, LinkUp, LocalChanges, Received, Send, Tick
from ringcast.daemon.table.admission import admit
from ringcast.daemon.table.pages import cut, decode_page_untrusted
from ringcast.daemon.table.rows import Delta, Entry, PublisherRow, SubscriberRow, TagRow
from ringcast.daemon.table.table import TagTable
from ringcast.errors import BadMessage
from ringcast.model.identity import PublisherInfo, SubscriberInfo
from ringcast.model.tag import TagAttributes

KINDS = [msgspec.inspect.type_info(kind).tag for kind in get_args(p.PeerMessage)] + ["scout"]  # type: ignore[attr-defined]
FIELDS = [
    "version", "mesh", "record", "age_ns", "roster", "reason", "seq", "target", "rumours", "sums", "buckets", "ranks",
    "answer", "versions", "page", "id", "service", "size", "piece", "reply", "error", "fields", "incarnation", "port",
]  # fmt: skip

scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=20)
    | st.binary(max_size=20) | st.builds(msgspec.msgpack.Ext, st.integers(-128, 127), st.binary(max_size=8))
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.integers(0, 9), inner, max_size=4)
    ),
    max_leaves=12,
)
plausible = st.fixed_dictionaries({"t": st.sampled_from(KINDS) | values}, optional=dict.fromkeys(FIELDS, values)).map(
    msgspec.msgpack.encode
)

ROWS = [
    TagRow(name="a", attributes=TagAttributes(), primary="n1"),
    PublisherRow(
        info=PublisherInfo(id=1, node="n1", tag="a", incarnation=1, pid=1, user="u"), depth=1, capacity_bytes=1
    ),
    SubscriberRow(info=SubscriberInfo(id=1, node="n1", pattern="a/*", pid=1, user="u")),
]
ENTRIES = [Entry(row.key, version, row) for version, row in enumerate(ROWS, 1)]
PAGE = cut([Delta(node="n1", incarnation=5, since=0, through=4, floor=0, entries=ENTRIES)])[0].content
GOOD = [
    p.encode_frame(p.Hello(record=p.NodeRecord("n1", 7, 0, 1, ("a:1",)), mesh=""))[4:],
    p.encode_frame(p.TableDelta(page=PAGE))[4:],
    p.encode_frame(p.RosterDigest(buckets=[0, 1], ranks={1: 2, 3: 4}))[4:],
    p.encode_frame(p.TableDigest(buckets=[0], versions={"n1": (1, 2)}))[4:],
    p.encode_scout(p.Scout(incarnation=1, port=1)),
    PAGE,
]


def check(body: bytes) -> None:
    for decode in (
        p.decode_untrusted, p.decode_hello_untrusted, p.decode_scout_untrusted, decode_page_untrusted
    ):  # fmt: skip
        message: Any
        try:
            message = decode(body)
        except BadMessage:
            continue
        assert isinstance(message, msgspec.Struct | list)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    body = bytearray(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 4))):
        body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    return bytes(body[: draw(st.integers(0, len(body)))]) if draw(st.booleans()) else bytes(body)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_noise(body: bytes) -> None:
    check(body)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(plausible)
def test_plausible_maps(body: bytes) -> None:
    check(body)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(damaged())
def test_good_messages_damaged(body: bytes) -> None:
    check(body)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(1, 60_000), st.sampled_from([b"\x91", b"\x81\xa1t", b"\x81\xa6fields", b"\xdc\xff\xff"]))
def test_deep_nesting(depth: int, opening: bytes) -> None:
    check((opening * depth)[:60_000])
    check(b"\x84\xa1t\xa7failure\xa2id\x01\xa5error\xa1x\xa6fields" + (opening * depth)[:60_000])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.binary(max_size=40), max_size=20))
def test_any_stream_is_frames_or_refused(pieces: list[bytes]) -> None:
    reader = p.FrameReader(1000)
    try:
        for piece in pieces:
            reader.feed(piece)
            while (body := reader.next_body()) is not None:
                check(body)
    except BadMessage:
        pass


# ------------------------------------------------------------------ a peer that keeps to the encoding only

ME, PEER, OTHER = 100, 200, 300
EDGES = [
    limits.PLAUSIBLE_LIFE, limits.MAX_LIFE, limits.MAX_VERSION, limits.PLAUSIBLE_BORN, limits.MAX_BORN,
    limits.COUNTER_STEP, limits.MAX_COUNTER, limits.MAX_AGE_NS,
]  # fmt: skip
numbers = st.sampled_from([0, 1, 2, 5, 50, *(edge + step for edge in EDGES for step in (-1, 0, 1))])
incarnations = st.sampled_from([ME, PEER, OTHER, 2**64 - 1])
names = st.sampled_from(["me", "peer", "other"])
records = st.builds(
    p.NodeRecord, names, incarnations, st.sampled_from([0, 1, 7]) | numbers, numbers,
    st.sampled_from([(), ("x:1",), ("not an address",)]), st.just(()), st.booleans(),
)  # fmt: skip
rows = st.sampled_from(ROWS) | st.builds(
    TagRow, name=st.sampled_from(["a", "b", "mine", "", "a\n", "x" * 256]),
    attributes=st.just(TagAttributes()), primary=names, backup=names,
    born=numbers, term=numbers,
)  # fmt: skip
entries = st.builds(lambda version, row: Entry(row.key, version, row), numbers, rows)
deltas = st.builds(
    Delta, node=names, incarnation=numbers, since=numbers, through=numbers, floor=numbers,
    entries=st.lists(entries, max_size=3),
)  # fmt: skip
buckets = st.lists(st.sampled_from([0, 1, 31, 32, 2**62]), max_size=4)
said: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        p.Hello, record=records, version=st.sampled_from([1, 2]), mesh=st.sampled_from(["", "x"]), age_ns=numbers
    ),
    st.builds(p.Refusal, reason=st.text(max_size=5)),
    st.builds(p.Ping, seq=numbers, roster=numbers),
    st.builds(p.Ack, seq=numbers),
    st.builds(p.PingFor, seq=numbers, target=incarnations),
    st.builds(p.Rumours, rumours=st.lists(st.builds(p.Rumour, records, st.integers(0, 2)), max_size=4)),
    st.builds(p.RosterSummary, sums=st.lists(numbers, max_size=33)),
    st.builds(p.RosterDigest, buckets=buckets, ranks=st.dictionaries(incarnations, numbers), answer=st.booleans()),
    st.builds(p.TableSummary, sums=st.lists(numbers, max_size=33)),
    st.builds(
        p.TableDigest,
        buckets=buckets,
        versions=st.dictionaries(names, st.tuples(numbers, numbers)),
        answer=st.booleans(),
    ),
    st.builds(p.TableDelta, page=st.lists(deltas, max_size=2).map(msgspec.msgpack.encode) | st.binary(max_size=20)),
    st.builds(p.Cancel, id=numbers),
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(st.tuples(said, st.booleans()), max_size=12))
def test_whatever_a_peer_says_the_core_survives(story: list[tuple[Any, bool]]) -> None:
    table = TagTable("me", 50)
    core = Cluster(table, ME, rng=Random(1), now_ns=0, control=("me:1",))
    now_ns, link = 0, 1
    core.handle(LinkUp(link, "x:1"), now_ns)
    core.handle(Received(link, p.Hello(record=p.NodeRecord("peer", PEER, 0, 1, ("peer:1",)))), now_ns)
    dialled = 0
    for message, later in story:
        now_ns += 10**9 if later else 1
        if core.membership.peer(link) is None:
            link += 1
            core.handle(LinkUp(link, None), now_ns)
        try:
            received = p.decode_untrusted(p.encode_frame(message)[4:])
        except BadMessage:  # its link would be closed
            continue
        for action in core.handle(Received(link, received), now_ns) + core.handle(Tick(), now_ns):
            dialled += isinstance(action, Connect)
            if isinstance(action, Send):
                _would_be_believed(action.message)
    # It went on serving, and what it writes next is taken in by everybody.
    assert core.membership.serving
    assert dialled <= limits.DIAL_BURST + limits.DIALS_PER_MINUTE / 60 * len(story) + 1
    row, changes = table.open_tag("mine", {})
    if row.primary == "me":
        changes += table.destroy("mine")
    for action in core.handle(LocalChanges(changes), now_ns):
        if isinstance(action, Send):
            _would_be_believed(action.message)
    assert table.incarnation <= limits.MAX_LIFE
    assert core.membership.me.counter <= limits.MAX_COUNTER


def _would_be_believed(message: p.PeerMessage) -> None:
    """Whatever this daemon was told, no other may close the link because of what it says then."""
    received = p.decode_untrusted(p.encode_frame(message)[4:])
    if isinstance(received, p.TableDelta):
        refused: Counter[str] = Counter()
        for delta in decode_page_untrusted(received.page):
            admit(delta, refused)
        assert not refused
