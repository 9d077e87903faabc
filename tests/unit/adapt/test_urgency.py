from ringcast.adapt.urgency import MOST_PATIENCE, Channel, Look, Rule

RULE = Rule(deadline_ns=10_000_000, share=0.1, raise_after=2, lower_after=3)
GOOD, BAD, FEW = Look(100, 0), Look(100, 20), Look(100, 5)


def levels(channel, looks):
    found = []
    for look in looks:
        channel.look(look)
        found.append(channel.level)
    return found


def test_raised_after_several_bad_looks_and_never_beyond_the_highest():
    assert levels(Channel(RULE), [BAD] * 7) == [
        "normal", "high", "high", "critical", "critical", "critical", "critical"
    ]  # fmt: skip


def test_one_bad_look_raises_nothing_and_few_misses_neither():
    assert set(levels(Channel(RULE), [BAD, GOOD, BAD, FEW, BAD, GOOD])) == {"normal"}


def test_lowered_after_calm_and_never_below_where_it_began():
    channel = Channel(RULE, "high")
    assert levels(channel, [BAD, BAD, GOOD, GOOD, GOOD]) == ["high", "critical", "critical", "critical", "high"]
    assert set(levels(channel, [GOOD] * 20)) == {"high"}


def test_few_misses_keep_it_where_it_is():
    channel = Channel(RULE)
    levels(channel, [BAD, BAD])
    assert set(levels(channel, [GOOD, GOOD, FEW] * 10)) == {"high"}


def test_the_wait_doubles_when_lowering_was_wrong():
    channel = Channel(RULE)
    waits = []
    for _ in range(9):
        levels(channel, [BAD, BAD])
        looks = 0
        while channel.level == "high":
            channel.look(GOOD)
            looks += 1
        waits.append(looks)
    assert waits[:4] == [3, 6, 12, 24]
    assert waits[-1] == 3 * MOST_PATIENCE


def test_a_change_says_why_and_silence_says_nothing():
    channel = Channel(RULE)
    assert channel.look(Look(0, 0)) is None
    channel.look(BAD)
    decision = channel.look(BAD)
    assert (decision.before, decision.after) == ("normal", "high")
    assert "20 of 100" in decision.why
