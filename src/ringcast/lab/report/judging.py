"""What is asked of the report itself: nothing in it is empty without a sentence, and how long it took. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringcast.lab.measuring.rows import Row, at_least, at_most
from ringcast.lab.report.entries import NUMBERED, Entry
from ringcast.lab.report.gathering import Found, Ran

EXPERIMENT = "report"
"""By which its rows are found in the lake and in `ringcast lab compare`."""
QUICK_S = 600.0
UNEXPLAINED = "Nothing was found for it, and nothing says why."


def left_out(entry: Entry, state: Ran) -> str:
    """What the form that was run leaves out, and which command has it; '' where that is nothing."""
    if not state.run.quick or not entry.only_full:
        return ""
    return f"'{state.run.command}' leaves out {entry.only_full}; 'ringcast lab run {entry.experiment}' has it."


def why_empty(one: Found, state: Ran | None) -> str:
    """A sentence for an entry without row, table and picture; '' where nothing explains that. What is shown elsewhere
    does not hide that an experiment failed."""
    entry = one.entry
    said = [entry.instead]
    if entry.experiment and state is None:
        said.insert(0, f"'ringcast lab run {entry.experiment}' was not run, or is not there.")
    elif state is not None and state.run.problem:
        said.insert(0, f"'{state.run.command}' failed: {state.run.problem}.")
    elif state is not None and (less := left_out(entry, state)):
        said.insert(0, less)
    elif state is not None and not entry.instead:
        # What the experiment itself says was skipped: no root, no peers.
        said += [note for note in state.figures.notes if "skipped" in note or "left out" in note]
    return " ".join(filter(None, said))


def rows(found: Sequence[Found], ran: Mapping[str, Ran], quick: bool, seconds: float | None) -> list[Row]:
    """`seconds` is how long all of it took, None where it was stopped."""
    unexplained = [one for one in found if one.empty and not why_empty(one, ran.get(one.entry.experiment))]
    names = f" ({', '.join(one.entry.key for one in unexplained)})" if unexplained else ""
    made = [
        at_least("tables and figures of the five papers that have an entry", len({one.entry.key for one in found}),
                 "entries", sum(map(sum, NUMBERED.values()))),
        at_most(f"entries that are empty without a sentence that says why{names}", len(unexplained), "entries", 0),
    ]  # fmt: skip
    if quick and seconds is not None:
        made.append(at_most("all experiments in their quick forms, and Spark", seconds, "s", QUICK_S))
    return made
