"""Variables on one node: an owner, those who read and follow, and what goes wrong."""

import itertools
import math
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import ringcast
from ringcast.variables.requests import Question


@pytest.fixture
def plant(session):
    with session.variables("plant", period_s=0.005, frame_s=0.5) as made:
        made.add_many({"engine/rpm": 800.0, "engine/on": True, "label": "bench", "curve": np.arange(3.0), "n": 3})
        yield made


@pytest.fixture
def elsewhere(connect, plant):
    with connect().variables("plant") as made:
        yield made


def test_a_late_joiner_reads_everything_like_a_dictionary(plant, elsewhere, eventually):
    assert elsewhere["engine/rpm"] == 800.0
    assert sorted(elsewhere) == ["curve", "engine/on", "engine/rpm", "label", "n"]
    assert (elsewhere["engine/on"], elsewhere["label"], elsewhere["n"]) == (True, "bench", 3)
    assert elsewhere["curve"].tolist() == [0.0, 1.0, 2.0]
    plant["engine/rpm"] = 900
    eventually(lambda: elsewhere["engine/rpm"] == 900.0)
    with pytest.raises(KeyError, match="nobody has a variable 'nope'"):
        elsewhere["nope"]


def test_a_removed_variable_is_gone_and_its_name_may_have_another_type(plant, elsewhere, eventually):
    assert "n" in elsewhere
    plant.remove("n")
    eventually(lambda: "n" not in elsewhere)
    plant.add("n", "now a text")
    eventually(lambda: elsewhere.get("n") == "now a text")
    with pytest.raises(KeyError, match="only its owner can"):
        elsewhere.remove("n")


def test_callbacks_queues_and_events_get_arrays_of_what_changed(plant, elsewhere, eventually):
    following = elsewhere.subscribe()
    following.wait_complete(30)
    called, queue, event = [], following.queue(), following.event()
    following.on_change(lambda changes: called.append({name: value for name, value, _ in changes.items()}))
    indices = plant.index(["engine/rpm"])
    plant.set_many(indices, [950.0], event_ns=77)
    changes = queue.get(30)
    assert (changes.names, changes.numbers.tolist(), changes.times.tolist()) == (["engine/rpm"], [950.0], [77])
    assert event.wait(30)
    eventually(lambda: {"engine/rpm": 950.0} in called)
    assert following.time_ns("engine/rpm") == 77
    assert changes.sent_ns <= changes.told_ns
    assert (changes.kernel_ns, changes.arrived_ns) == (0, 0), "it came from this very node"


def test_a_callback_that_raises_is_counted_and_the_others_go_on(plant, elsewhere, eventually):
    following = elsewhere.subscribe()
    following.wait_complete(30)
    errors, seen = [], following.queue()
    following.on_change(lambda changes: 1 / 0, on_error=lambda error, changes: errors.append(error))
    plant["engine/rpm"] = 1.0
    assert seen.get(30).numbers.tolist() == [1.0]
    eventually(lambda: len(errors) == 1 and following.failed == 1)


def test_writing_what_is_anothers_is_a_request_to_its_owner(plant, elsewhere):
    elsewhere["engine/rpm"] = 1200.0
    assert plant["engine/rpm"] == 1200.0
    plant.owned().table.set("n", 44)
    assert elsewhere.ask("n", "curve")["n"] == 44
    elsewhere.ask_set({"curve": np.ones(2), "label": "new"})
    assert (plant["curve"].tolist(), plant["label"]) == ([1.0, 1.0], "new")
    with pytest.raises(TypeError, match="variable 'label' is a str, not float"):
        elsewhere["label"] = 1.5
    with pytest.raises(KeyError, match="nobody has"):
        elsewhere["nope"] = 1.5
    assert plant["label"] == "new"


def test_browsing_asks_owners_and_not_the_mirror(plant, elsewhere, connect):
    connect().variables("plant", period_s=0.005).add("other/x", 1.5)
    plant.add_many({f"many/v{i}": float(i) for i in range(1203)})  # more than one answer holds
    found = {one.name: one for one in elsewhere.browse("many/*", "other/*", timeout=60)}
    assert len(found) == 1204
    assert (found["many/v700"].value, found["many/v700"].type) == (700.0, "float")
    assert found["many/v700"].owner.incarnation == plant.owned().publisher.incarnation
    assert found["other/x"].owner.incarnation != found["many/v700"].owner.incarnation
    assert elsewhere.browse("nobody/**", timeout=60) == []
    told = {one.variables: one for one in elsewhere.owners(timeout=60)}
    assert told[1].period_s == 0.005
    assert len(plant.own) in told
    with pytest.raises(ValueError, match="no value of a variable"):
        elsewhere._requests._ask(
            plant.owned().publisher.incarnation, Question(set={"label": {"dtype": 1}}), time.monotonic() + 60
        )


def test_an_owner_that_dies_while_it_is_asked(connect, program, eventually):
    owner = program(
        """
        import ringcast, time
        variables = ringcast.connect().variables("frail", period_s=0.01)
        variables.add("x", 1.0)
        print("ready", flush=True)
        time.sleep(600)
        """
    )
    assert owner.line() == "ready"
    variables = connect().variables("frail")
    assert variables.ask("x", timeout=60) == {"x": 1.0}
    os.kill(owner.pid, signal.SIGSTOP)
    eventually(lambda: "State:\tT" in Path(f"/proc/{owner.pid}/status").read_text())  # or it may answer yet
    found = []

    def ask():
        try:
            variables.ask("x", timeout=60)
        except (ringcast.BrokenError, TimeoutError) as exc:
            found.append(exc)

    asking = threading.Thread(target=ask)
    asking.start()
    eventually(lambda: variables._requests.under_way)
    owner.kill()
    asking.join(60)
    assert isinstance(found[0], ringcast.BrokenError)
    assert "ended while it was asked" in str(found[0])
    assert variables["x"] == 1.0, "the last value is in the mirror"


def test_mistakes_of_an_owner_are_refused_and_disturb_nothing_else(plant, elsewhere, eventually):
    following = elsewhere.subscribe()
    following.wait_complete(30)
    with pytest.raises(TypeError, match="engine/rpm"):
        plant["engine/rpm"] = "fast"
    with pytest.raises(ValueError, match="is there already, as float"):
        plant.add("engine/rpm", 1)
    with pytest.raises(TypeError, match="label"):
        elsewhere.ask_set({"label": 5.0}, timeout=30)
    plant["engine/rpm"] = math.nan
    eventually(lambda: math.isnan(following["engine/rpm"]))
    plant["engine/rpm"] = 801.0
    eventually(lambda: following["engine/rpm"] == 801.0)
    assert (following["label"], following.counters()["refused"]) == ("bench", 0)


def test_a_variable_that_nobody_has_comes_when_somebody_has_it(plant, elsewhere):
    queue = elsewhere.subscribe("valve/*", policy=ringcast.OnChange()).queue()
    with pytest.raises(KeyError, match="nobody has"):
        elsewhere.ask("valve/inlet", timeout=30)
    plant.add("valve/inlet", 0.5)
    while not (told := queue.get(30)).names:
        pass
    assert (told.names, told.numbers.tolist()) == (["valve/inlet"], [0.5])


def test_two_owners_of_one_name(plant, connect, eventually):
    other = connect().variables("plant", period_s=0.005)
    following = connect().variables("plant").subscribe()
    following.wait_complete(30)
    other.add("engine/rpm", 5.0)
    other.add("theirs", 6.0)
    eventually(lambda: following.conflicts == 1 and "theirs" in following)
    assert following["engine/rpm"] == 800.0


def test_policies_at_the_publisher_select_and_mark(plant, elsewhere):
    periodic = elsewhere.subscribe("engine/*", policy=ringcast.Periodic(0.05)).queue()
    changed = elsewhere.subscribe("engine/rpm", policy=ringcast.OnChange(dead_band=10.0, longest_s=0.2)).queue()
    first = periodic.get(30)
    assert set(first.names) == {"engine/on", "engine/rpm"}
    while not periodic.get(30).repeated.all():
        pass
    assert set(changed.get(30).numbers.tolist()) == {800.0}
    plant["engine/rpm"] = 805.0
    told = changed.get(30)
    assert set(told.numbers.tolist()) == {800.0}, "within the dead band"
    assert told.repeated.all()
    plant["engine/rpm"] = 815.0
    while (told := changed.get(30)).repeated.all():
        pass
    assert set(told.numbers.tolist()) == {815.0}


def test_a_policy_on_any_tag(session, connect, eventually):
    tag = session.tag("raw")
    publisher = tag.publisher()
    subscriber = connect().subscribe("raw", policy=ringcast.OnChange(by="value"))
    eventually(lambda: any(row.publishers for row in session.tags("@view/**")) or publisher.send(b"first") < 0)
    for word in (b"a", b"a", b"b", b"b", b"a"):
        publisher.send(word, event_ns=9)
    words = [b"first"]
    while words[-3:] != [b"a", b"b", b"a"]:
        words.append(subscriber.recv(timeout=30).data)
    assert all(one != next_ for one, next_ in itertools.pairwise(words[1:]))
    with pytest.raises(ringcast.QosMismatch, match="no numbers to compare"):
        tag.subscribe(policy=ringcast.OnChange(dead_band=1.0))
    with pytest.raises(ValueError, match="leave every"):
        tag.subscribe(every=2, policy=ringcast.Periodic(1.0))


def test_bad_arguments_are_refused_at_the_call(session):
    with pytest.raises(ValueError, match="period_s"):
        session.variables("bad", period_s=-1)
    variables = session.variables("bad")
    with pytest.raises(KeyError, match="no variables"):
        variables.set_many([0], [1.0])
    variables.add("x", 1)
    with pytest.raises(KeyError, match="no float variables"):
        variables.set_many([0], [1.0])
    with pytest.raises(TypeError, match="a policy is"):
        variables.subscribe(policy="often")
    with pytest.raises(ValueError, match="longer than 0"):
        variables.subscribe(policy=ringcast.Periodic(0.0))
