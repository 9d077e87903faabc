"""What a daemon accepts from others, and how much it does for them: every limit in one place. Pure values.

Messages are not authenticated yet, so any number may come from an attacker. Invariant: a number that this daemon
answers with a greater one of its own is refused well before the end of its type, so that the answer is never refused.
`docs/protocol.md` shows this table; a test compares the two.
"""

from __future__ import annotations

# ------------------------------------------------------------------ numbers

PLAUSIBLE_LIFE = 4_102_444_800_000_000_000
"""A life begins as a time of day in ns. Rows of a life after 2100 count only if their node's record says so."""
MAX_LIFE = 2**62
"""Of any life. The gap between the two lets a node start a later life than any that was claimed for it."""
MAX_VERSION = 2**53
"""Of a node's rows: it counts what the node wrote."""
PLAUSIBLE_BORN = 2**52
"""Birth times of tags up to this value advance this node's logical clock."""
MAX_BORN = 2**53
MAX_TERM = 2**53
"""Take-overs of one tag; there the count stops."""
MAX_COUNTER = 2**53
"""Of a node's counter of its own descriptions."""
COUNTER_STEP = 2**20
"""A rumour may raise what is known of a node by so much; beyond it only the node itself is believed, where it was
dialled."""
MAX_AGE_NS = 10 * 365 * 86_400 * 1_000_000_000
"""No daemon is older than ten years."""
AGE_SLACK_NS = 5_000_000_000
"""Between two reports an age must grow like the time between them, within this tolerance."""

# ------------------------------------------------------------------ rows

MAX_TAGS_PER_NODE = 16_384
MAX_PUBLISHERS_PER_NODE = 16_384
MAX_SUBSCRIBERS_PER_NODE = 16_384
MAX_ROWS_OF_OTHERS = 262_144
"""Rows of all other nodes together."""
MAX_LABEL_CHARS = 255
"""Of a user's or program's name in a row."""
MAX_SETTINGS_PER_TAG = 256
MAX_PLACED_PER_TAG = 512
"""Subscribers whose proxies the keeper of a tag places; those beyond have theirs at the publisher."""
MAX_CHOICES_PER_TAG = 16
"""Of ways in which subscribers of a tag leave the transport to its keeper; those beyond have the default."""
MAX_WHY_CHARS = 400

# ------------------------------------------------------------------ dialling

DIAL_BURST = 128
DIALS_PER_MINUTE = 120
"""Of addresses learnt from others; configured ones, and those that answered before, do not count."""

# ------------------------------------------------------------------ links

MAX_HANDSHAKES = 64
"""Under way at once, of callers who have to prove their names."""
MAX_HANDSHAKES_PER_HOST = 16
HANDSHAKES_PER_S = 20
"""Of one host, and five times as many at once."""

# ------------------------------------------------------------------ work for others

PEER_REQUESTS_PER_S = 4000
"""Of one link, and five times as many at once; a faster one is read no further for a moment."""

MAX_STAGES_PER_PEER = 16
MAX_STAGES_FOR_PEERS = 64
"""Stages that scale for channels to other nodes; each may be a process."""

MAX_BUFFERS_PER_PEER = 256
"""Pull buffers that this node holds for one other node."""

# ------------------------------------------------------------------ the log

LOG_LINES_PER_MINUTE = 5
"""Log lines of one kind about one peer; the rest is counted and summed up."""
LOG_KINDS = 256
"""Kinds and peers told apart; beyond that they share one count."""
