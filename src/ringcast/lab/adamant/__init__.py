"""Paper 004 (ADAMANT): transports under loss, simulated and in a real network."""
