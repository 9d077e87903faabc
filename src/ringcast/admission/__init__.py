"""Whether declared streams meet their deadlines: worst-case delays from end to end. Pure: values in, an answer out.

Read in this order: `model` (what is declared), `reading` (from a file), `priorities` (who goes first), `response` (a
node's processors), `queueing` (a link), `recovery` (what a lost packet costs), `steps` (a stream as steps one after the
other), `analysis` (all of them together), `verdict` (the answer), `fitting` (what would fit). docs/admission.md has the
formulae.
"""

from ringcast.admission.model import (
    AdmissionError,
    Cost,
    Costs,
    Link,
    Node,
    OtherTask,
    Pull,
    Stream,
    Subscriber,
    System,
)

__all__ = [
    "AdmissionError", "Cost", "Costs", "Link", "Node", "OtherTask", "Pull", "Stream", "Subscriber", "System",
]  # fmt: skip
