"""How well the performance model foresees published tables and this machine: `python -m benchmarks.perf`."""
