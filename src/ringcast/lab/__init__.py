"""The lab: networks of several nodes on this machine, and the experiments of the papers on them.

`testbed` builds networks of namespaces with daemons and measuring processes on their nodes; `simulation` runs many nodes
in virtual time; `measuring` has what is measured with and what comes of it. Experiments: `push_pull` (papers 000, 001),
`adamant` (004) and `placement` (001, section 2).
"""
