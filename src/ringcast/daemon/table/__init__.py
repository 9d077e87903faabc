"""The replicated tag table: rows, replicas, matching, succession. Pure."""
