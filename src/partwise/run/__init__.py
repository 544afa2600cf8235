"""A run: the one loop, when it stops, what it keeps, and whom it tells."""
