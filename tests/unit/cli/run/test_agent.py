"""What an agent set it takes back, to what was set before it and nothing else."""

from types import SimpleNamespace

import pytest

from ringcast.adapt.urgency import Decision, Rule
from ringcast.cli.run.agent import Agent
from ringcast.model.place import Setting


class Session:
    node = "here"

    def __init__(self):
        self.settings = {}
        self.asked = []

    def tags(self, pattern):
        return [SimpleNamespace(name="t", settings=self.settings)]

    def set_channel(self, tag, *, node, priority):
        self.asked.append((tag, node, priority))
        self.settings[node] = Setting(priority=priority)


@pytest.fixture
def session():
    return Session()


def raised(session):
    agent = Agent(session, "t", Rule(1))
    for before, after in (("normal", "high"), ("high", "critical")):
        assert agent._act("t", Decision(before, after, "late")) == ""
    return agent


@pytest.mark.parametrize(("had", "back"), [("", ""), ("low", "low"), ("high fifo:30", "high")])
def test_the_class_before_it_is_there_again(session, had, back):
    if had:
        session.settings["here"] = Setting(priority=had)
    raised(session).close()
    assert session.asked[-1] == ("t", "here", back)


def test_what_somebody_set_meanwhile_stays(session):
    agent = raised(session)
    session.settings["here"] = Setting(priority="low")
    agent.close()
    assert session.asked[-1] == ("t", "here", "critical")
