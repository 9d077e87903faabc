"""Computed bounds beside measured delays: what stages take on this machine, and random task sets that run on it."""
