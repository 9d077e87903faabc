"""Verbs that show what is there: nodes, tags, channels, rates, delays."""
