"""How messages travel between nodes: kinds of transport behind one interface, chosen by name."""

from ringcast.transport.interface import Channel, Promises, Receiving, Sending, Source, Transport
from ringcast.transport.registry import find, names

__all__ = ["Channel", "Promises", "Receiving", "Sending", "Source", "Transport", "find", "names"]
