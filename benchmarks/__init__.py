"""Side-by-side benchmarks. Every objective here is computed by `Problem.objective`, outside the clock."""
