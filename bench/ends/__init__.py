"""What peers have in common: the interface they implement and the loops that are timed. Knows no library."""
