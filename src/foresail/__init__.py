"""Foresail tunes deep-learning training: it foresees how each run will end and how fast it can go."""

__version__ = "0.1.0"
