"""Verbs that record and replay."""
