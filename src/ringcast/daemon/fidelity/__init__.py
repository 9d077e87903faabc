"""Subscriptions that take what fits: rates that follow publishers, and ranges that follow what there is room for."""
