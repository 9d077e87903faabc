"""What every benchmark shares: processes, rounds, rows. Knows no peer and no question."""
