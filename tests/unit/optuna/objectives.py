"""Objectives as people write them for Optuna, small."""

from __future__ import annotations

import math

import optuna


def branching(trial: optuna.Trial) -> float:
    """Conditional parameters, reports, pruning, an attribute, an option that no knob has."""
    layers = trial.suggest_int("layers", 1, 3)
    units = [trial.suggest_int(f"units_{i}", 4, 64, log=True) for i in range(layers)]
    optimizer = trial.suggest_categorical("optimizer", ["adam", "sgd", None])
    lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
    momentum = trial.suggest_float("momentum", 0.0, 0.9) if optimizer == "sgd" else 0.0
    if lr > 0.001 and layers > 1:  # not met by the runs that look for the space
        trial.suggest_float("late", 0.0, 1.0)
    trial.set_user_attr("units", units)
    value = 0.0
    for epoch in range(6):
        value = (1.0 - 0.2 * abs(math.log10(lr) + 2.0) + 0.01 * momentum) * (1.0 - math.exp(-(epoch + 1) / 2.0))
        trial.report(value, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def two_goals(trial: optuna.Trial) -> tuple[float, float]:
    x = trial.suggest_float("x", 0.0, 5.0)
    y = trial.suggest_float("y", 0.0, 3.0)
    return 4 * x**2 + 4 * y**2, (x - 5) ** 2 + (y - 5) ** 2


def parabola(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -10.0, 10.0)
    if x > 9.0:
        raise optuna.TrialPruned
    return (x - 2.0) ** 2


def broken(trial: optuna.Trial) -> float:
    trial.suggest_float("x", 0.0, 1.0)
    raise ValueError("no data")


def broken_at_once(trial: optuna.Trial) -> float:
    raise ValueError("no data")


def without_parameters(trial: optuna.Trial) -> float:
    return 1.0


def noted(trial: optuna.Trial) -> float:
    return trial.number + trial.suggest_int("k", 0, 100)
