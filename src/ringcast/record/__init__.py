"""Recordings: messages as they were received, in Parquet or MCAP, and back onto tags. No Spark, no Java.

`bronze` is the schema, `commits` and `recording` what lies on disk, `writer` and `recorder` how it gets there,
`replay` how it comes back. Needs the extra `record` (pyarrow, mcap), all but `figures` and `machine`.
"""
