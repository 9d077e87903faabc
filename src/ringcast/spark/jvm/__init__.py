"""The Java that Spark runs in: finding one, starting it quietly, and waiting for the Python workers it started."""
