"""Paper 001, experiment 5: end-to-end delays without and with reservations of processors and links."""
