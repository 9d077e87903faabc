"""Verbs that measure: benchmarks, the lab, the planner."""
