"""Suites that implementations of Ringcast's interfaces can run against themselves."""
