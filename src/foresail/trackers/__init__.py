"""Readers of a study's log that tell others of it: TensorBoard, MLflow, Weights & Biases, tables.

They run beside the driver, in a process of their own (`foresail track`), so whatever goes wrong in one, or hangs, is
told and does not touch the study. How much was told is kept in a mark beside the log, so a resumed study is not told
twice.
"""

from foresail.trackers.following import follow

__all__ = ["follow"]
