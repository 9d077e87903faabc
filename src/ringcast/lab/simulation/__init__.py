"""Many nodes or receivers in one process, in virtual time, around the code that daemons run."""
