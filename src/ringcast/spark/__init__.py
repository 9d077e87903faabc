"""Spark: tags as tables. The only package that imports pyspark.

`session.open_session()` gives a Spark session that knows the format `ringcast`; `source` and `sink` are its two halves.
Needs the extra `spark`. Importing this package imports none of it.
"""
