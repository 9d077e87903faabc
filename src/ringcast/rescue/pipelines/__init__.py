"""The pipelines of the search and rescue: survivors and fires from the same infrared, and their score."""
