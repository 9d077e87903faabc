"""Quality of service by name: profiles, what is offered against what is requested, what became of it. Pure.

`profile` has the values and their file, `matching` compares two of them, `monitor` sees from arrivals what was missed.
"""

from ringcast.model.profile import Profile
from ringcast.qos.matching import Mismatch, mismatches, nearest
from ringcast.qos.monitor import Monitor, QualityEvent
from ringcast.qos.profile import built_in, read

__all__ = ["Mismatch", "Monitor", "Profile", "QualityEvent", "built_in", "mismatches", "nearest", "read"]
