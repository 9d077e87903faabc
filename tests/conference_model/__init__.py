"""Board, chat and game as `page/together.js` computes them, in Python: what its results are compared with."""
