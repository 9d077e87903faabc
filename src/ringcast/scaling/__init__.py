"""Scaling: what a proxy does to a stream, in time (`temporal`) and in space (scalers, by codec)."""

from ringcast.scaling.interface import Scaler, Size, check_size
from ringcast.scaling.registry import codecs, scaler_for

__all__ = ["Scaler", "Size", "check_size", "codecs", "scaler_for"]
