"""Native rings as the objects of an application hold them: one that it writes, those that it reads, those of a history.

They carry the native plumbing and the registration, so that the public objects show neither. A registration ends with
the last reference to its ring, and a bound native method (`send = tag.publisher().send`) is such a reference.
"""
