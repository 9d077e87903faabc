"""`ringcast agent`: watches deadlines, and makes channels that miss them more urgent."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from ringcast.adapt.urgency import Channel, Decision, Look, Rule
from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.deadlines.arrivals import Arrivals
from ringcast.cli.parts.ending import terminable
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.program import Misuse
from ringcast.errors import RingcastError
from ringcast.model import priority, schedule
from ringcast.model.tag import check_pattern

if TYPE_CHECKING:
    from ringcast.session import Session

HELP = "Watch the deadlines of tags, and raise or lower the class of channels by rule, until Ctrl-C."

EPILOG = """\
The agent counts messages that arrive later than --deadline after they were sent, or not at all: those of this node's
applications that subscribe to a tag by name, as their own counters have them (latencies in steps of a fifth). Where
none does, the agent subscribes to the tag itself. Where nothing comes, the publishers' nodes are asked whether they
send. After --raise-after looks in a row with more than --share of them, the tag's channels to this node are set one
class higher, as 'ringcast set TAG --node THIS --priority CLASS' does; after --lower-after looks without a miss, one
class lower again, but never below what they had. If they miss again then, the next wait is twice as long. Each change
is a line of the timeline, and so is what it did: misses in the looks before and after it. When the agent ends, the
class is again what was set before it, unless somebody else has set another meanwhile.

examples:
  ringcast agent 'arm/*' --deadline 10ms
  ringcast agent arm/joints --deadline 2ms --share 0.001 --period 5s
  ringcast agent 'arm/**' --deadline 10ms --json | jq 'select(.after)'
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", metavar="TAG", help="a tag, or several by wildcard")
    parser.add_argument("--deadline", required=True, metavar="TIME", help="from send to arrival: 10ms, 500us")
    parser.add_argument("--share", type=float, default=0.01, metavar="X", help="misses allowed, of 1 (0.01)")
    parser.add_argument("--period", default="1s", metavar="TIME", help="between two looks (1s)")
    parser.add_argument("--raise-after", type=int, default=2, metavar="N", help="looks above --share in a row (2)")
    parser.add_argument("--lower-after", type=int, default=10, metavar="N", help="looks without a miss (10)")
    parser.add_argument("--looks", type=int, default=0, metavar="N", help="end after so many (default: never)")
    add_access(parser)
    add_json(parser, "one JSON object per look and tag")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    try:
        rule = Rule(schedule.duration_ns(args.deadline), args.share, args.raise_after, args.lower_after)
        period_s = schedule.duration_ns(args.period) * 1e-9
    except ValueError as exc:
        raise Misuse(str(exc)) from exc
    if not 0 <= rule.share < 1 or rule.raise_after < 1 or rule.lower_after < 1 or period_s <= 0:
        raise Misuse("--share is from 0 to 1, and --raise-after, --lower-after and --period are above 0")
    with terminable(), connect(args, "agent") as session:
        agent = Agent(session, check_pattern(args.pattern), rule)
        try:
            looks = 0
            while not args.looks or looks < args.looks:
                looks += 1
                for line in agent.look(time.monotonic() + period_s):
                    _show(output, line)
        finally:
            agent.close()
    return 0


class Agent:
    """Of one session; its changes hold for channels to the session's node."""

    def __init__(self, session: Session, pattern: str, rule: Rule) -> None:
        self._session = session
        self._rule = rule
        self._arrivals = Arrivals(session, pattern, rule.deadline_ns)
        self._channels: dict[str, Channel] = {}
        self._set: dict[str, str] = {}
        self._had: dict[str, str] = {}

    def look(self, until: float) -> list[dict[str, Any]]:
        """Watch until that monotonic time, decide and act; a line of the timeline for each tag that sent something."""
        lines = []
        for tag, seen in sorted(self._arrivals.look(until).items()):
            channel = self._channels.setdefault(tag, Channel(self._rule, self._level_of(tag)))
            decision = channel.look(Look(*seen))
            line: dict[str, Any] = {"time_ns": time.time_ns(), "tag": tag, **seen._asdict(), "class": channel.level}
            if decision is not None:
                line |= {"before": decision.before, "after": decision.after, "why": decision.why}
                line["done"] = self._act(tag, decision)
            lines.append(line)
        return lines

    def close(self) -> None:
        """Take back what was set: the class is what an administrator set for this node before, if anything. What
        somebody set meanwhile stays."""
        for tag, level in self._set.items():
            try:
                if self._setting(tag) == level:
                    self._session.set_channel(tag, node=self._session.node, priority=self._had[tag])
            except RingcastError:  # the tag is gone, or its keeper: then the setting is too
                continue
        self._arrivals.close()

    def _setting(self, tag: str) -> str:
        """The class that is set for the tag's channels to this node; '' is none."""
        rows = [row for row in self._session.tags(tag) if row.name == tag and self._session.node in row.settings]
        return priority.read(rows[0].settings[self._session.node].priority).level if rows else ""

    def _level_of(self, tag: str) -> str:
        rows = [row for row in self._session.channels(why=False) if row.tag == tag and row.direction == "in"]
        levels = [priority.read(row.priority).level or priority.NORMAL for row in rows]
        return max(levels, key=priority.CLASSES.index, default="")

    def _act(self, tag: str, decision: Decision) -> str:
        """'' when it is in force, else why not."""
        try:
            had = self._setting(tag)
            self._session.set_channel(tag, node=self._session.node, priority=decision.after)
        except RingcastError as exc:
            return str(exc)
        self._had.setdefault(tag, had)
        self._set[tag] = decision.after
        return ""


def _show(output: Output, line: dict[str, Any]) -> None:
    if output.json:
        output.record(line)
        return
    at = time.strftime("%H:%M:%S", time.localtime(line["time_ns"] * 1e-9))
    said = f"{at}  {line['tag']}  {line['missed']} of {line['messages']} late or lost  {line['class']}"
    if "after" in line:
        said += f"  <- {line['before']}: {line['why']}" + (f"; not done: {line['done']}" if line["done"] else "")
    output.line(said)
