"""Variables: many named, typed values behind one tag (LabMap). What their owner holds, and what everybody else does."""

from ringcast.variables.changes import Changes
from ringcast.variables.following import VariablesSubscription
from ringcast.variables.mapping import Variables

__all__ = ["Changes", "Variables", "VariablesSubscription"]
