"""Verbs that change a running mesh."""
