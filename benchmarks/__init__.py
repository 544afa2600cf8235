"""Benchmarks: the race against scikit-learn and others, growth, phases, process costs, and a table of a paper."""
