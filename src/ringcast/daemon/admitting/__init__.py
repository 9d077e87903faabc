"""Declared streams of the running mesh: whether all deadlines are kept when another publisher or subscriber comes."""
