"""The named parameters of the step-time model, as a table.

Each is positive and lives in the log. A run's value of it is

    log value = log median + stack + device + job + residual(configuration)

where each term is normal with mean zero: `stack_sd` for what all jobs under one software stack share,
`device_sd` for what those on one kind of device share, `job_sd` for what is the job's own (`blind_sd` instead
where the job's features are not known), and a smooth residual for the three scales (`residual.py`). The
first two belong to the hardware and are kept from job to job.

Medians: our reading of the efficiencies that published tables reach (A100 and V100, 2021 to 2024).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Parameter(NamedTuple):
    """One row of the table; deviations are of the natural logarithm."""

    name: str
    unit: str
    median: float
    stack_sd: float
    device_sd: float
    job_sd: float
    blind_sd: float
    meaning: str


TABLE = (
    Parameter("gemm_eff", "fraction", 0.60, 0.3, 0.15, 0.0, 0.0, "of the peak rate in large products"),
    Parameter("gemm_half", "FLOP", 4e7, 1.5, 0.3, 0.0, 0.0, "work at which a kernel runs at half that rate"),
    Parameter("head_eff", "fraction", 0.9, 0.4, 0.1, 0.0, 0.0, "of gemm_eff in the output layer"),
    Parameter("memory_eff", "fraction", 0.6, 0.5, 0.2, 0.0, 0.0, "of the memory bandwidth"),
    Parameter("launch", "s", 2e-5, 1.0, 0.3, 0.2, 0.6, "to start one operation"),
    Parameter("knee", "power", 2.0, 0.3, 0.1, 0.0, 0.0, "of the smooth maximum of work and launches"),
    Parameter("tp_latency", "s", 2e-5, 1.0, 0.3, 0.0, 0.0, "of a tensor-parallel collective"),
    Parameter("tp_latency_step", "s", 8e-6, 1.0, 0.3, 0.0, 0.0, "the same, for each further member"),
    Parameter("tp_link_eff", "fraction", 0.5, 0.6, 0.2, 0.0, 0.0, "of the link in those collectives"),
    Parameter("sync_latency", "s", 3e-4, 1.0, 0.5, 0.5, 1.5, "of a gradient exchange"),
    Parameter("sync_latency_step", "s", 1e-4, 1.0, 0.5, 0.5, 1.5, "the same, for each further member"),
    Parameter("sync_link_eff", "fraction", 0.5, 0.6, 0.4, 0.0, 0.0, "of the link inside a machine"),
    Parameter("sync_network_eff", "fraction", 0.5, 0.8, 0.4, 0.0, 0.0, "of the network between machines"),
    Parameter("overlap", "power", 1.0, 0.7, 0.3, 0.3, 0.7, "g - 1: 0 adds exchange to work, large hides it"),
    Parameter("boundary", "s", 5e-5, 1.5, 0.3, 0.0, 0.0, "to hand a micro-batch to the next stage"),
    Parameter("optimizer", "bytes", 30.0, 1.0, 0.3, 0.0, 0.0, "moved for each parameter in an update"),
    Parameter("fixed", "s", 4e-3, 1.5, 0.3, 0.3, 0.7, "of a step, whatever it does"),
    Parameter("per_micro_batch", "s", 5e-4, 1.5, 0.3, 0.3, 0.7, "of a micro-batch, whatever it does"),
    Parameter("straggler", "fraction", 3e-3, 1.0, 0.5, 0.0, 0.5, "slower for each doubling of the devices"),
    Parameter("serial", "fraction", 0.03, 1.0, 0.5, 0.3, 0.3, "of CPU work that threads do not share"),
    Parameter("memory_wall", "threads", 8.0, 1.0, 0.7, 0.4, 0.6, "that saturate the memory of a socket"),
    Parameter("sibling", "core", 0.2, 0.6, 0.3, 0.2, 0.3, "gained from a hyperthread on a busy core"),
    Parameter("thread_sync", "s", 2e-6, 1.0, 0.5, 0.3, 0.3, "to join threads after one operation"),
    Parameter("compute_scale", "ratio", 1.0, 0.0, 0.0, 0.12, 3.0, "work to the count of the features"),
    Parameter("kernel_scale", "ratio", 1.0, 0.0, 0.0, 0.2, 2.0, "operations to the count of the features"),
    Parameter("sync_scale", "ratio", 1.0, 0.0, 0.0, 0.2, 2.5, "exchange to the count of the features"),
    Parameter("total_scale", "ratio", 1.0, 0.0, 0.0, 0.04, 0.04, "all of it"),
)

NAMES = tuple(p.name for p in TABLE)
INDEX = {name: i for i, name in enumerate(NAMES)}
COUNT = len(TABLE)
MEDIAN_LOG = np.log([p.median for p in TABLE])
STACK_VAR = np.square([p.stack_sd for p in TABLE])
DEVICE_VAR = np.square([p.device_sd for p in TABLE])
JOB_VAR = np.square([p.job_sd for p in TABLE])
BLIND_VAR = np.square([p.blind_sd for p in TABLE])
