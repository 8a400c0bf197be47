"""Where the figures in docs/benchmarks.md come from: `make bench` measures them again."""
