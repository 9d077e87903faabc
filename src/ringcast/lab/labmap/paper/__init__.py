"""Paper 002 beside what Spark made of the grid: its Tables 1 and 2, Figures 4 to 7, sections VIII to X. Pure.

Rows of gold tables in; rows, tables and pictures of the report out.
"""
