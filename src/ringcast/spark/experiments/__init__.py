"""Pipelines over `bronze.results`: what experiments and benchmarks measured becomes tables, lines, grids and models."""
