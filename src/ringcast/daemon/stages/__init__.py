"""Scaling stages: who wants one, who runs it, and the ring it makes."""
