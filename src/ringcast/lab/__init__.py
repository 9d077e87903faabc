"""The lab: a testbed of network namespaces, and the experiments that run on it.

`topology` says what a network is (pure), `testbed` builds it, `cleanup` removes it, also after a crash.
"""
