"""Kinds of data, a loss and a kind of array that the core does not know: each is one small class here, and everything
above has to run with it."""
