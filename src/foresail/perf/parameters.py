"""The parameters of the step-time law and their prior, and what its formula leaves over.

Medians are our reading of the efficiencies that published tables reach (P100 to H100, 2019 to 2024).
Deviations and lengths were chosen by how well left-out jobs of public tables were foreseen
(`benchmarks/perf`).
"""

from __future__ import annotations

from foresail.perf.law import Parameter, Residual

STEP_TIME_PARAMETERS = (
    Parameter("gemm_eff", "fraction", 0.8, 0.2, 0.12, 0.0, 0.0, "of the peak rate in large products", 0.5, 0.0),
    Parameter("gemm_half", "FLOP", 40000000.0, 1.5, 0.54, 0.0, 0.0, "work at which a kernel runs at half that rate"),
    Parameter("attention_eff", "fraction", 0.65, 0.76, 0.25, 0.0, 0.0, "of gemm_eff in attention"),
    Parameter("fp8_eff", "fraction", 0.7, 0.24, 0.2, 0.0, 0.0, "of gemm_eff in eight bits"),
    Parameter("head_eff", "fraction", 0.95, 0.3, 0.1, 0.0, 0.0, "of gemm_eff in the output layer"),
    Parameter("memory_eff", "fraction", 0.67, 0.4, 0.2, 0.0, 0.0, "of the memory bandwidth"),
    Parameter("launch", "s", 3e-05, 1.0, 0.096, 0.12, 2.6, "to start one operation", 0.3, 0.12),
    Parameter("knee", "power", 3.0, 0.3, 0.1, 0.0, 0.0, "of the smooth maximum of work and launches"),
    Parameter("tp_latency", "s", 1.5e-05, 0.22, 0.3, 0.0, 0.0, "of a tensor-parallel collective"),
    Parameter("tp_latency_step", "s", 6e-06, 1.0, 0.3, 0.0, 0.0, "the same, for each further member"),
    Parameter("tp_link_eff", "fraction", 0.8, 0.34, 0.2, 0.0, 0.0, "of the link in those collectives"),
    Parameter("sync_latency", "s", 0.0004, 1.0, 0.5, 0.5, 1.5, "of a gradient exchange"),
    Parameter("sync_latency_step", "s", 0.00013, 0.66, 0.66, 0.5, 1.7, "the same, for each further member"),
    Parameter("sync_link_eff", "fraction", 0.5, 0.6, 0.4, 0.0, 0.0, "of the link inside a machine"),
    Parameter("sync_network_eff", "fraction", 0.75, 0.8, 0.4, 0.0, 0.0, "of the network between machines"),
    Parameter("overlap", "power", 0.3, 0.7, 0.3, 0.3, 0.63, "g - 1: 0 adds the exchange to work, large hides it"),
    Parameter("prefetch", "power", 2.5, 0.5, 0.3, 0.2, 0.55, "the same under full sharding, which gathers ahead"),
    Parameter("boundary", "s", 5e-05, 1.5, 0.3, 0.0, 0.0, "to hand a micro-batch to the next stage"),
    Parameter("optimizer", "bytes", 22.0, 1.0, 0.3, 0.0, 0.0, "moved for each parameter in an update"),
    Parameter("fixed", "s", 0.002, 1.5, 0.2, 0.3, 0.76, "of a step, whatever it does"),
    Parameter("per_micro_batch", "s", 0.0005, 1.2, 0.27, 0.17, 0.7, "of a micro-batch, whatever it does"),
    Parameter("straggler", "fraction", 0.006, 1.0, 0.5, 0.0, 0.5, "slower for each doubling of the devices"),
    Parameter("serial", "fraction", 0.06, 0.5, 0.3, 1.0, 1.0, "of CPU work that threads do not share"),
    Parameter("memory_wall", "threads", 24.0, 0.7, 0.5, 0.2, 0.2, "beside which memory gives each half"),
    Parameter("sibling", "core", 0.2, 0.6, 0.3, 0.2, 0.3, "gained from a hyperthread on a busy core"),
    Parameter("thread_sync", "s", 2e-06, 1.0, 0.5, 0.3, 0.3, "to join threads after one operation"),
    Parameter(
        "crowding", "fraction", 0.25, 0.7, 0.4, 0.3, 0.3, "of threaded work lost for each further thread on a core"
    ),
    Parameter("handoff", "s", 0.0003, 1.0, 0.5, 0.3, 0.5, "to take a micro-batch from a loader worker"),
    Parameter("loading_work", "fraction", 0.5, 0.3, 0.2, 0.5, 0.5, "of loading that takes a core, and is not waiting"),
    Parameter("loading", "ratio", 1.0, 0.0, 0.0, 0.2, 2.5, "a sample's loading to the count of the features"),
    Parameter("compute_scale", "ratio", 1.0, 0.0, 0.0, 0.09, 3.0, "work to the count of the features", 0.0, 0.3),
    Parameter("kernel_scale", "ratio", 1.0, 0.0, 0.0, 0.17, 2.0, "operations to the count of the features", 0.0, 0.3),
    Parameter("sync_scale", "ratio", 1.0, 0.0, 0.0, 0.2, 2.5, "exchange to the count of the features"),
    Parameter("total_scale", "ratio", 1.0, 0.0, 0.0, 0.027, 0.063, "all of it"),
)

STEP_TIME_RESIDUALS = (
    Residual(
        "compute_scale",
        0.35,
        0.0,
        0.08,
        0.0,
        False,
        {"micro_batch": 0.81, "tp": 1.0, "hidden": 2.5, "seq_len": 2.0, "recompute": 1.6},
    ),
    Residual("kernel_scale", 0.2, 0.0, 0.05, 0.0, False, {"tp": 0.84, "micro_batch": 1.3}),
    Residual("sync_scale", 0.21, 0.0, 0.15, 0.0, True, {"dp": 1.5, "nodes": 2.0, "stage": 2.0}),
    Residual("compute_scale", 0.0, 0.0, 0.0, 0.25, False, {"micro_batch": 1.2}),
    Residual("sync_scale", 0.0, 0.78, 0.0, 1.7, True, {"dp": 1.5, "nodes": 2.0}),
    Residual(
        "total_scale",
        0.0,
        0.0,
        0.0,
        0.25,
        True,
        {"micro_batch": 4.6, "dp": 0.62, "nodes": 3.0, "threads": 3.0},
    ),
    Residual(
        "total_scale",
        0.052,
        0.0,
        0.022,
        0.0,
        True,
        {
            "micro_batch": 4.0,
            "tp": 1.9,
            "pp": 4.0,
            "dp": 4.0,
            "accumulation": 20.0,
            "hidden": 6.4,
            "layers": 15.0,
            "threads": 2.0,
            "nodes": 3.0,
        },
    ),
)
