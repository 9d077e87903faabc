"""The papers' figures that the package carries."""

from __future__ import annotations

import csv
from importlib import resources

import pytest

from ringcast.lab.measuring import reference


def test_all_reference_tables_are_in_the_package():
    found = {path.name for path in (resources.files("ringcast.lab.measuring") / "tables").iterdir()}
    assert found >= {"push_pull_tables.csv", "labmap_tables.csv", "yarp_classes.csv", "adamant_statements.csv"}


def test_figures_are_in_seconds():
    assert reference.figure("1", "no proxy", "round trip mean") == pytest.approx(0.006012933)
    assert reference.figure("2", "8 subscribers", "1792 B") == pytest.approx(0.01216)
    assert reference.figure("3", "intermediate proxy", "1 B") == pytest.approx(0.008964)
    assert reference.figure("4", "proxy cpu", "proxy on remote node", reference.PUSH_PULL_QOS) == pytest.approx(42e-6)


def test_what_the_paper_does_not_give_is_none():
    assert reference.figure("2", "9 subscribers", "64 B") is None
    assert reference.figure("4", "proxy cpu", "proxy at publisher", reference.PUSH_PULL_QOS) is None


def test_no_line_is_lost():
    text = (resources.files("ringcast.lab.measuring") / "tables" / "push_pull_tables.csv").read_text()
    assert len(reference.push_pull()) == len(list(csv.reader(text.splitlines()))) - 1


def test_a_damaged_table_is_noticed():
    with pytest.raises(KeyError):
        reference.parse("paper,table,row,column,value,unit\nx,1,r,c,2,fortnights\n")
    with pytest.raises(ValueError, match="could not convert"):
        reference.parse("paper,table,row,column,value,unit\nx,1,r,c,much,ms\n")
