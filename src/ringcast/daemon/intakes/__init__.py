"""Streams of other nodes that the only reader here receives itself: which, and how its process is asked."""
