"""Results as pictures (SVG) and as one HTML page that needs nothing else."""

from ringcast.spark.report.page import Section, page
from ringcast.spark.report.rescue import write_report

__all__ = ["Section", "page", "write_report"]
