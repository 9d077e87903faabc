"""Verbs that analyse what was recorded."""
