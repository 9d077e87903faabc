"""One stream lives through phases: a transport that chooses itself against every fixed one (paper 004, future work)."""
