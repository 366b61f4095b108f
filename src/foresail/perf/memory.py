"""Bytes on the fullest device: states, activations, logits, gathered layers, and what the framework takes.

States follow Rajbhandari et al. (SC 2020, section 3): with P parameters held, mixed precision keeps 2 P of
weights, 2 P of gradients and 12 P of optimizer state; stages 1 to 3 cut them in turn by the replicas.
Activations follow Korthikanti et al. (MLSys 2023, sections 4 and 5): all of a stage's layers for every
micro-batch in flight, at most one for each later stage, or only the inputs of layers under full
recomputation, and one live layer.

Predict with an upper bound: running out of memory costs a launch. A run that did is a measurement too, of
which only a lower bound is known (`fit(..., at_least=...)`).
"""

from __future__ import annotations

import numpy as np

from foresail.perf.fitting import Fit, Prediction, predict
from foresail.perf.law import Law, Parameter, Residual
from foresail.perf.rows import Bools, Floats, Rows

_REPLICATED = 10.0 / 34.0
_LIVE = 17.0
"""What one recomputed layer keeps, in inputs of a layer: 34 s b h bytes; its scores are freed at once."""
USABLE_FRAC = 0.92
"""Of a device's memory that a run may plan to use: the rest goes to fragments and other processes."""

MEMORY_PARAMETERS = (
    Parameter("state", "ratio", 1.0, 0.10, 0.05, 0.03, 0.6, "weights and gradients to the count"),
    Parameter(
        "optimizer", "ratio", 1.2, 0.25, 0.05, 0.03, 0.6, "optimizer state and its workspace to the count"
    ),
    Parameter("activation", "ratio", 1.0, 0.25, 0.10, 0.08, 3.0, "kept activations to the count"),
    Parameter("boundary", "ratio", 1.2, 0.4, 0.1, 0.05, 0.4, "kept inputs of recomputed layers to the count"),
    Parameter("logits", "ratio", 1.0, 0.5, 0.1, 0.1, 0.5, "of the output layer to the count"),
    Parameter("buffer", "ratio", 0.3, 0.8, 0.3, 0.1, 0.5, "buffers of gradient exchange to the gradients"),
    Parameter(
        "context", "bytes", 2.5e9, 0.5, 0.2, 0.1, 0.7, "of the driver, the libraries and their buffers"
    ),
    Parameter("fragments", "ratio", 1.05, 0.03, 0.02, 0.04, 0.05, "allocated to used"),
)
MEMORY_RESIDUALS = (
    Residual("activation", 0.12, 0.0, 0.05, 0.1, False, {"micro_batch": 2.0, "tp": 1.5, "hidden": 2.0}),
    Residual("fragments", 0.06, 0.0, 0.03, 0.03, True, {"dp": 3.0, "tp": 3.0, "pp": 3.0, "hidden": 2.0}),
)


def state_bytes(rows: Rows) -> tuple[Floats, Floats]:
    """[N] weights and gradients, and the state of the optimizer (Adam), of the fullest device."""
    held, mixed = _held(rows), rows.element_bytes <= 2
    weights, optimizer = np.where(mixed, 2.0, 4.0), np.where(mixed, 12.0, 8.0)
    cut = [np.where(rows.stage >= stage, rows.dp, 1.0) for stage in (3, 2, 1)]
    gathered = np.where(rows.stage >= 3, 2.0 * rows.largest_layer_params / rows.tp * weights, 0.0)
    return held * (weights / cut[0] + rows.gradient_bytes / cut[1]) + gathered, held * optimizer / cut[2]


def _held(rows: Rows) -> Floats:
    """[N] parameters of the fullest device before sharding: its blocks, and the embedding of the first
    stage."""
    embedding = (rows.vocab + rows.seq_len) * rows.hidden * (rows.layers > 0)
    embedding = np.minimum(embedding, rows.params)
    return (embedding + (rows.params - embedding) * _stage_frac(rows)) / rows.tp


def _stage_frac(rows: Rows) -> Floats:
    blocks = np.where(rows.layers > 0, rows.layers, rows.pp)
    return np.ceil(blocks / rows.pp) / blocks


def activation_bytes(rows: Rows) -> tuple[Floats, Floats]:
    """[N] kept activations, and kept inputs of recomputed layers, of the fullest (first) stage."""
    in_flight = np.minimum(rows.accumulation, rows.pp)
    cut = _REPLICATED + (1 - _REPLICATED) / rows.tp
    wide = np.maximum(rows.element_bytes, 2.0) / 2
    everything = rows.activation_bytes * rows.micro_batch * cut * wide
    blocks = np.where(rows.layers > 0, rows.layers, 1.0)
    kept = everything * _stage_frac(rows) * in_flight
    live = np.where(rows.layers > 0, _LIVE * rows.boundary_bytes * rows.micro_batch * cut * wide, everything / blocks)
    inputs = rows.boundary_bytes * rows.micro_batch * blocks * _stage_frac(rows) * in_flight * wide
    full = rows.recompute >= 1
    return np.where(full, live, kept * np.where(rows.recompute > 0, 34.0 / 60.0, 1.0)), np.where(
        full, inputs, 0.0
    )


def log_bytes(theta: Floats, rows: Rows) -> Floats:
    """Log of the peak bytes of the fullest device, [..., N]."""
    p = MEMORY.named(theta)
    kept, inputs = activation_bytes(rows)
    state, optimizer = state_bytes(rows)
    unknown = ~rows.known & (rows.activation_bytes == 0)
    kept = np.where(unknown, _ASSUMED_ACTIVATION * rows.micro_batch, kept)
    logits = 6.0 * rows.seq_len * rows.vocab * rows.micro_batch / rows.tp
    buffers = np.where(rows.dp > 1, _held(rows) * 2.0, 0.0)
    used = (
        state * p["state"]
        + optimizer * p["optimizer"]
        + kept * p["activation"]
        + inputs * p["boundary"]
        + logits * p["logits"]
        + buffers * p["buffer"]
    )
    return np.log(used * p["fragments"] + p["context"] * np.where(rows.on_cpu, 0.15, 1.0))


_ASSUMED_ACTIVATION = 3e7  # bytes for a sample where nothing is known: learned from the first measurements
MEMORY = Law("memory", MEMORY_PARAMETERS, MEMORY_RESIDUALS, log_bytes)


def upper_bytes(prediction: Prediction, *, factor: float = 1.645) -> Floats:
    """[N] bytes that hold with 95 % confidence (one-sided; `factor` from `intervals.calibrate` is honest)."""
    found: Floats = np.exp(prediction.log_median + factor * prediction.log_sd)
    return found


def fits(model: Fit | None, rows: Rows, *, factor: float = 1.645, failed: Rows | None = None) -> Bools:
    """[N] whether runs stay within their devices' memory with 95 % confidence.

    `failed` are runs that ran out of memory: what needs at least as much is never called safe again.
    """
    bound = upper_bytes(predict(MEMORY, model, rows), factor=factor)
    found: Bools = bound <= USABLE_FRAC * rows.memory_bytes
    return found if failed is None else found & ~needs_as_much(rows, failed)


def needs_as_much(rows: Rows, failed: Rows) -> Bools:
    """[N] whether a run is one that failed, or the same with a larger micro-batch."""
    names = ("job_id", "device_id", "dp", "tp", "pp", "stage", "recompute", "element_bytes", "seq_len")
    alike = [getattr(rows, name)[:, None] == getattr(failed, name)[None] for name in names]
    same: Bools = np.all(alike, axis=0)
    found: Bools = np.asarray(
        (same & (rows.micro_batch[:, None] >= failed.micro_batch[None])).any(1), dtype=np.bool_
    )
    return found
