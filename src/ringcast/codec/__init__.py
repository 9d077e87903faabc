"""Codecs: how a tag's values become bytes. One per tag, named in the tag's attributes."""

from ringcast.codec.interface import Codec, CodecKind, Encoded
from ringcast.codec.registry import find, installed

__all__ = ["Codec", "CodecKind", "Encoded", "find", "installed"]
