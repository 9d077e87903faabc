"""The command line beside real programs: every verb's main path, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest
from processes import Run, Start, ended

import ringcast
from ringcast.control.requests import OpenTag
from ringcast.testing.waiting import PATIENCE_S, wait_until


@pytest.fixture
def daemon(shared_daemon: Any) -> Any:
    return shared_daemon


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# ------------------------------------------------------------------ tags


def test_tags_shows_what_publishers_count(session: ringcast.Session, run: Run) -> None:
    tag = session.tag("lab/temp", codec="json", depth=16)
    publisher = tag.publisher()
    subscriber = tag.subscribe()
    for number in range(3):
        publisher.send(number)
    subscriber.recv(timeout=PATIENCE_S)
    (row,) = json.loads(run("tags", "lab/*", "--publishers", "--subscribers", "--json"))
    assert (row["name"], row["sent"], row["publisher_count"], row["subscriber_count"]) == ("lab/temp", 3, 1, 1)
    assert (row["attributes"]["codec"], row["attributes"]["depth"]) == ("json", 16)
    assert row["publishers"][0]["info"]["id"] == publisher.info.id
    assert row["subscribers"][0]["counters"]["received"] == 1
    assert row["subscribers"][0]["latency_p50_ns"] > 0
    assert row["age_ns"] > 0
    told = run("tags", "--publishers", "--subscribers")
    assert told.splitlines()[1].split()[:3] == ["lab/temp", "json", "16"]


def test_tags_of_an_empty_node(run: Run, daemon: Any) -> None:
    assert run("tags") == "there are no tags yet\n"
    assert json.loads(run("tags", "--json")) == []


def test_tags_watch_goes_on_until_ctrl_c(session: ringcast.Session, start: Start) -> None:
    session.tag("lab/temp")
    process = start("tags", "--watch", "0.05", "--json")
    assert process.stdout is not None
    seen = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 130
    assert [row["tags"][0]["name"] for row in seen] == ["lab/temp"] * 3


# ------------------------------------------------------------------ pub


def test_pub_sends_values_in_order(session: ringcast.Session, run: Run) -> None:
    subscriber = session.subscribe("lab/temp")
    summary = json.loads(run("pub", "lab/temp", "21.5", "21.6", "--json"))
    assert [subscriber.recv(timeout=PATIENCE_S).data for _ in range(2)] == [b"21.5", b"21.6"]
    assert (summary["sent"], summary["first_seq"], summary["last_seq"], summary["subscribers"]) == (2, 0, 1, 1)


def test_pub_sends_each_line_of_standard_input(session: ringcast.Session, run: Run) -> None:
    subscriber = session.tag("lab/log", codec="json").subscribe()
    run("pub", "lab/log", "--stdin", given='{"a": 1}\n[2]\n')
    assert [subscriber.recv(timeout=PATIENCE_S).data for _ in range(2)] == [{"a": 1}, [2]]


def test_pub_counts_at_a_rate_once_somebody_listens(session: ringcast.Session, start: Start) -> None:
    tag = session.tag("lab/tick")
    process = start("pub", "lab/tick", "--rate", "500", "--count", "20", "--wait", "1")
    wait_until(tag.publishers)
    subscriber = tag.subscribe()
    received = [subscriber.recv(timeout=PATIENCE_S) for _ in range(20)]
    assert [message.data for message in received] == [str(number).encode() for number in range(20)]
    code, out, _ = ended(process)
    assert code == 0
    assert out.startswith("sent 20 message(s) (numbers 0 to 19")


def test_pub_repeats_values_up_to_a_count_and_creates_the_tag_as_told(session: ringcast.Session, run: Run) -> None:
    given = ("--codec", "numpy", "--depth", "7", "--capacity", "64K")
    assert json.loads(run("pub", "lab/array", "[1, 2]", "[3]", "--count", "3", "--json", *given))["sent"] == 3
    (row,) = session.tags("lab/array")
    assert (row.attributes.codec, row.attributes.depth, row.attributes.capacity_bytes) == ("numpy", 7, 65536)


def test_pub_ended_by_ctrl_c_says_what_it_sent(session: ringcast.Session, start: Start) -> None:
    subscriber = session.subscribe("lab/tick")
    process = start("pub", "lab/tick", "--rate", "200", "--json")
    subscriber.recv(timeout=PATIENCE_S)
    process.send_signal(signal.SIGINT)
    code, out, errors = ended(process)
    assert (code, errors) == (130, "")
    assert json.loads(out)["sent"] >= 1


# ------------------------------------------------------------------ sub


def test_sub_prints_what_arrives_for_people(session: ringcast.Session, run: Run) -> None:
    publisher = session.publisher("lab/temp")
    publisher.send(b"21.5")
    publisher.send(b"\x00\x01")
    first, second = run("sub", "lab/temp", "--start", "earliest", "--count", "2").splitlines()
    assert first.startswith("lab/temp  #0  ")
    assert first.endswith("  21.5")
    assert second.endswith("  0x0001 (2 B)")


def test_sub_prints_objects_for_programs(session: ringcast.Session, run: Run) -> None:
    publisher = session.publisher("lab/state", codec="json")
    publisher.send({"on": True})
    publisher.send([1])
    (message,) = lines(run("sub", "lab/**", "--start", "latest", "--count", "1", "--json"))
    assert (message["tag"], message["seq"], message["encoding"], message["value"]) == ("lab/state", 1, "json", [1])
    assert message["publisher"] == publisher.info.id
    assert message["received_ns"] >= message["sent_ns"]


def test_sub_begins_at_a_sequence_number(session: ringcast.Session, run: Run) -> None:
    publisher = session.publisher("lab/tick")
    for number in range(10):
        publisher.send(str(number).encode())
    told = lines(run("sub", "lab/tick", "--start", "7", "--count", "3", "--json"))
    assert [message["value"] for message in told] == ["7", "8", "9"]


def test_sub_raw_writes_bytes_and_nothing_else(session: ringcast.Session, run: Run) -> None:
    publisher = session.publisher("lab/file")
    publisher.send(b"first,")
    publisher.send(b"second")
    assert run("sub", "lab/file", "--start", "earliest", "--count", "2", "--raw") == "first,second"


def test_sub_raw_writes_records_by_their_codec(session: ringcast.Session, run: Run) -> None:
    session.publisher("lab/state", codec="json").send({"a": 1})
    # A publisher that was dropped has left; the tag's next one is alive while the command runs.
    publisher = session.publisher("lab/state")
    publisher.send({"a": 2})
    assert run("sub", "lab/state", "--start", "latest", "--count", "1", "--raw") == '{"a":2}'


def test_sub_waits_for_a_tag_and_does_not_create_it(session: ringcast.Session, start: Start) -> None:
    process = start("sub", "lab/late", "--count", "1", "--json")
    assert process.stderr is not None
    assert "no tag lab/late yet" in process.stderr.readline()
    assert session.tags() == []
    publisher = session.publisher("lab/late", codec="json")
    publisher.send({"first": True})
    code, out, _ = ended(process)
    assert (code, json.loads(out)["value"]) == (0, {"first": True})


def test_sub_reports_what_it_lost(session: ringcast.Session, start: Start) -> None:
    publisher = session.publisher("lab/burst", depth=4)
    publisher.send(b"first")
    process = start("sub", "lab/burst", "--start", "earliest", "--count", "5", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["value"] == "first"
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    for number in range(100):
        publisher.send(str(number).encode())
    process.send_signal(signal.SIGCONT)
    code, out, errors = ended(process)
    assert code == 0
    assert [(message["value"], message["lost"]) for message in lines(out)] == [
        ("96", 96),
        ("97", 0),
        ("98", 0),
        ("99", 0),
    ]
    assert errors == "received 5, lost 96\n"


def test_sub_reliable_is_seen_as_such(session: ringcast.Session, start: Start) -> None:
    tag = session.tag("lab/temp")
    process = start("sub", "lab/temp", "--reliable", "--count", "1")
    wait_until(tag.subscribers)
    assert tag.subscribers()[0].info.reliable
    publisher = tag.publisher()
    publisher.send(b"1")
    assert ended(process)[0] == 0


def test_sub_that_got_nothing_fails(session: ringcast.Session, run: Run) -> None:
    session.tag("lab/quiet")
    assert run("sub", "lab/quiet", "--count", "1", "--timeout", "0.05", code=1) == ""


def test_sub_ended_by_ctrl_c(session: ringcast.Session, start: Start) -> None:
    tag = session.tag("lab/quiet")
    process = start("sub", "lab/quiet")
    wait_until(tag.subscribers)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (130, "", "")


def test_sub_into_a_pipe_that_closes_is_quiet(session: ringcast.Session, start: Start) -> None:
    tag = session.tag("lab/tick")
    publisher = tag.publisher()
    process = start("sub", "lab/tick")
    wait_until(tag.subscribers)
    assert process.stdout is not None
    process.stdout.close()

    def has_ended() -> bool:
        publisher.send(b"more")
        return process.poll() is not None

    wait_until(has_ended)
    assert process.stderr is not None
    assert process.stderr.read() == ""


# ------------------------------------------------------------------ pull


@pytest.fixture
def ten(session: ringcast.Session) -> ringcast.Publisher:
    """A publisher whose history holds numbers 2 to 9."""
    publisher = session.publisher("lab/tick", depth=8)
    for number in range(10):
        publisher.send(str(number).encode())
    return publisher


@pytest.mark.parametrize(
    ("how", "values"),
    [
        ((), ["9"]),
        (("--back", "3"), ["6"]),
        (("--seq", "4"), ["4"]),
        (("--range", "3:5"), ["3", "4", "5"]),
        (("--range", "0:3"), ["2", "3"]),
        (("--since", "8"), ["8", "9"]),
        (("--since", "1h"), ["2", "3", "4", "5", "6", "7", "8", "9"]),
        (("--before", "0s"), ["9"]),
    ],
)
def test_pull(ten: ringcast.Publisher, run: Run, how: tuple[str, ...], values: list[str]) -> None:
    found = json.loads(run("pull", "lab/tick", *how, "--json"))
    messages = found if isinstance(found, list) else [found]
    assert [message["value"] for message in messages] == values
    assert [line.split()[-1] for line in run("pull", "lab/tick", *how).splitlines()] == values


@pytest.mark.parametrize("how", [("--seq", "0"), ("--seq", "10"), ("--back", "8"), ("--range", "20:30"),
                                 ("--before", "1h"), ("--between", "2h", "1h")])  # fmt: skip
def test_pull_of_what_is_not_held_says_what_is(ten: ringcast.Publisher, run: Run, how: tuple[str, ...]) -> None:
    assert run("pull", "lab/tick", *how, code=1) == ""


def test_pull_from_one_of_several_publishers(
    ten: ringcast.Publisher, session: ringcast.Session, start: Start, run: Run
) -> None:
    other = session.publisher("lab/tick")
    other.send(b"other")
    code, _, errors = ended(start("pull", "lab/tick", "--seq", "0"))
    assert code == 1
    assert "--publisher" in errors
    assert str(ten.info.id) in errors
    found = json.loads(run("pull", "lab/tick", "--seq", "0", "--publisher", str(other.info.id), "--json"))
    assert found["value"] == "other"
    assert run("pull", "lab/tick", "--publisher", "999", code=1) == ""


def test_pull_from_a_publisher_that_has_left(run: Run, daemon: Any) -> None:
    run("pub", "lab/gone", "1", "2")
    assert json.loads(run("pull", "lab/gone", "--back", "1", "--json"))["value"] == "1"


def test_a_tag_whose_codec_is_not_installed_is_deleted(daemon: Any, wire: Any, run: Run) -> None:
    wire.ask(OpenTag, name="lab/x", requested={"codec": "elsewhere"}, create=True)
    with pytest.raises(ringcast.CodecError), ringcast.connect(socket=daemon.socket_path, start=False) as session:
        session.tag("lab/x", create=False)
    assert run("delete", "lab/x") == "deleted lab/x\n"
    assert "lab/x" not in run("tags")
