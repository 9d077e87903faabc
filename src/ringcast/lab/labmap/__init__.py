"""Paper 002, LabMap: variables between nodes; what is lost, how late it is, how it wavers and what it leaves to others."""
