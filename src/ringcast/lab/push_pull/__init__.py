"""The experiments of the push-pull papers (000 and 001), and what this project is asked to show beside them.

`network` is the papers' network with its measuring processes; `tables` (paper 000), `distance` (paper 001, experiments
1 to 4 and the routers) and `components` (paper 001, Table 4) measure on it. `peer_round_trips`, `streams`,
`fan_out` and `agreement` compare. `experiment` runs them all.
"""
