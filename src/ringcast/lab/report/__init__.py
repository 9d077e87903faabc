"""One report of everything: the papers' tables and figures, each with what it says, what was found here, and by which
command."""
