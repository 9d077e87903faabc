"""The lab: a testbed of network namespaces, and the experiments that run on it.

`topology` says what a network is (pure), `testbed` builds it, `cleanup` removes it, also after a crash. `mesh_nodes`
puts daemons on it and `actor` measuring processes (`end`); `push_pull` has the experiments of the push-pull papers.
"""
