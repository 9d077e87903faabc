"""How models are learned: examples from results, boosted trees, networks, and models of pyspark.ml as plain numbers."""
