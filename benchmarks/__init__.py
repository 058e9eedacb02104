"""The source of the figures in docs/speed.md; ``python -m benchmarks`` prints them all."""
