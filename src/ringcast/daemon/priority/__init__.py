"""Priorities of this node: what its kernel grants, and settings that come into force on several nodes."""
