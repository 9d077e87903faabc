"""Paper 002, LabMap: variables between nodes; what is lost, how late the rest is, and what is left to others."""
