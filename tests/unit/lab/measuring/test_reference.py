"""The papers' figures that the package carries."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from importlib import resources

import pytest

from ringcast.lab.measuring import reference

TABLES = resources.files("ringcast.lab.measuring") / "tables"
HANDED_OVER = {
    "adamant_statements.csv": "dedfa739114dd8821eda9ce3cca9a873e6286b7dc1ecc87556e7b07382269b39",
    "labmap_tables.csv": "35110f5cbd21ed988b874cbbcfca59f75cff8d2eed7bf80cf0fffae3a8a50298",
    "push_pull_tables.csv": "99e39b1ebac2ab5554dae275a2a2c6147b80de85881d55da40f08510922a85e5",
    "yarp_classes.csv": "bcd1329b337e0fe97c24916496dd16fecf95e5c16c5fa54e65b881934485c1a9",
}
"""SHA-256 of the papers' figures as they were copied from the papers: who changes one says so here too."""


def test_the_papers_figures_are_those_that_were_copied_from_them():
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in TABLES.iterdir()}
    assert {name: found.get(name) for name in HANDED_OVER} == HANDED_OVER


def test_tables_of_paper_002_are_whole():
    """Five numbers of subscribers, two coefficients and transports; under stress and idle, or publisher and
    subscriber."""
    lines = list(csv.DictReader((TABLES / "labmap_tables.csv").read_text().splitlines()))
    places = [tuple(line[name] for name in list(line)[:-2]) for line in lines]
    assert Counter(line["table"] for line in lines) == {"1": 40, "2": 40}
    assert len(set(places)) == len(places)


def test_figures_are_in_seconds():
    assert reference.figure("1", "no proxy", "round trip mean") == pytest.approx(0.006012933)
    assert reference.figure("2", "8 subscribers", "1792 B") == pytest.approx(0.01216)
    assert reference.figure("3", "intermediate proxy", "1 B") == pytest.approx(0.008964)
    assert reference.figure("4", "proxy cpu", "proxy on remote node", reference.PUSH_PULL_QOS) == pytest.approx(42e-6)


def test_what_the_paper_does_not_give_is_none():
    assert reference.figure("2", "9 subscribers", "64 B") is None
    assert reference.figure("4", "proxy cpu", "proxy at publisher", reference.PUSH_PULL_QOS) is None


def test_no_line_is_lost():
    text = (TABLES / "push_pull_tables.csv").read_text()
    assert len(reference.push_pull()) == len(list(csv.reader(text.splitlines()))) - 1


def test_a_damaged_table_is_noticed():
    with pytest.raises(KeyError):
        reference.parse("paper,table,row,column,value,unit\nx,1,r,c,2,fortnights\n")
    with pytest.raises(ValueError, match="could not convert"):
        reference.parse("paper,table,row,column,value,unit\nx,1,r,c,much,ms\n")
