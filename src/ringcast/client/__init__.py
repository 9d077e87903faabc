"""The session's machinery: connection, pending calls, registrations, ring following, staging, lifetime."""
