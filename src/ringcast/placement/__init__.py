"""Where proxies belong: a network, demands and costs become a plan. Pure: no socket, clock, thread or asyncio.

Read in this order: `model` (what is asked), `reading` (from a file), `routes`, `delay`, `charges` (what a place costs),
`plan` (the answer), `solve/` (how it is found), `explain` (why there). docs/placement.md has the formulae.
"""

from ringcast.placement.model import (
    Costs,
    Demand,
    Link,
    Node,
    Objective,
    PlacementError,
    Problem,
    Subscriber,
)

__all__ = ["Costs", "Demand", "Link", "Node", "Objective", "PlacementError", "Problem", "Subscriber"]
