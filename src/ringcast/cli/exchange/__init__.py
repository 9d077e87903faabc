"""Verbs that send, receive and pull messages."""
