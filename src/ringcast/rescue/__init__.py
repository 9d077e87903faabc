"""A search and rescue with known truth: paper 004, section 2.1, as seeded streams of images, poses and positions."""

from ringcast.rescue.mission import HARD, Mission, Settings
from ringcast.rescue.recording import bronze_rows, clock_rows, truth_rows

__all__ = ["HARD", "Mission", "Settings", "bronze_rows", "clock_rows", "truth_rows"]
