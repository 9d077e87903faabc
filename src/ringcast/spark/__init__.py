"""The data pipeline on Spark. The only package of Ringcast that imports pyspark."""
