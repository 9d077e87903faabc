"""Transports under loss on real networks: daemons in network namespaces, kernel loss, real sockets.

What the simulator predicts stands beside what is measured (`comparison`); what only sockets can answer is in
`round_trips` and `fan_out`.
"""
