"""The lab: networks of several nodes on this machine, and the experiments of the papers on them.

`testbed` builds networks of namespaces with daemons and measuring processes on their nodes. `simulation` runs many
nodes in virtual time. `measuring` has what experiments measure with and what they report. The experiments are
`push_pull` (papers 000 and 001), `adamant` (paper 004) and `placement` (paper 001, section 2).
"""
