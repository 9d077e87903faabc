"""Verbs that run or look after a node: daemon, up, demo, doctor and their relatives."""
