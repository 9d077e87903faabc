"""Tags as tables: the format `ringcast` for Spark. `source` reads tags and recordings, `sink` and `outlet` publish."""
