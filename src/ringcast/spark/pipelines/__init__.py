"""Pipelines: pure functions from DataFrame to DataFrame. A batch and a stream go through the same ones."""
