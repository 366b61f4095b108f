"""Objectives as people write them for Optuna, small."""

from __future__ import annotations

import itertools
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


def torch_net(trial: optuna.Trial) -> float:
    """A network whose layers depend on their number; reports and prunes."""
    import torch

    torch.manual_seed(0)
    x = torch.randn(256, 6)
    y = (x[:, 0] * x[:, 1] > 0).long()
    widths = [6, *(trial.suggest_int(f"width_{i}", 4, 32) for i in range(trial.suggest_int("layers", 1, 2)))]
    layers = [m for a, b in itertools.pairwise(widths) for m in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 2))
    name = trial.suggest_categorical("optimizer", ["Adam", "SGD"])
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=trial.suggest_float("lr", 1e-4, 0.1, log=True))
    for epoch in range(4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        accuracy = float((model(x).argmax(1) == y).float().mean())
        trial.report(accuracy, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return accuracy


def linear_model(trial: optuna.Trial) -> float:
    """scikit-learn, step by step."""
    from sklearn.datasets import load_iris
    from sklearn.linear_model import SGDClassifier

    x, y = load_iris(return_X_y=True)
    model = SGDClassifier(alpha=trial.suggest_float("alpha", 1e-5, 0.1, log=True), random_state=0)
    for step in range(5):
        model.partial_fit(x, y, classes=[0, 1, 2])
        trial.report(model.score(x, y), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return float(model.score(x, y))


def boosted(trial: optuna.Trial) -> float:
    """LightGBM, one value at the end."""
    import lightgbm
    from sklearn.datasets import load_iris

    x, y = load_iris(return_X_y=True)
    chosen = {"num_leaves": trial.suggest_int("num_leaves", 2, 16), "lambda_l1": trial.suggest_float("l1", 1e-8, 1.0)}
    fixed = {"objective": "binary", "verbosity": -1, "num_threads": 1}
    model = lightgbm.train({**fixed, **chosen}, lightgbm.Dataset(x, y > 0), num_boost_round=3)
    return float(((model.predict(x) > 0.5) == (y > 0)).mean())
