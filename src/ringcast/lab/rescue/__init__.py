"""A search and rescue with known truth: paper 004, section 2.1, as seeded streams of images, poses and positions."""

from ringcast.lab.rescue.mission import HARD, Mission, Settings
from ringcast.lab.rescue.recording import bronze_rows, clock_rows, truth_rows

__all__ = ["HARD", "Mission", "Settings", "bronze_rows", "clock_rows", "truth_rows"]
