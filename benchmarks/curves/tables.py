"""Turns rows of forecasts into the tables and the acceptance list. Means are over traces, with equal
weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from benchmarks.curves.contest import BASELINES, MCMC, OURS
from numpy.typing import NDArray

from foresail.curves.score import brier, coverage, reliability, tail_ratio

Floats = NDArray[Any]
Table = dict[str, Floats]
LEVELS, TOLERANCE = (0.5, 0.8, 0.95), (0.06, 0.05, 0.03)


@dataclass(frozen=True)
class Row:
    """One line of the acceptance list."""

    point: str
    reached: str
    goal: str
    passed: bool


def pick(table: Table, **where: Any) -> Table:
    """Rows whose columns have these values."""
    keep = np.ones(len(table["method"]), dtype=bool)
    for name, value in where.items():
        keep &= np.isin(table[name], value if isinstance(value, list) else [value])
    return {name: column[keep] for name, column in table.items()}


def by_trace(table: Table, measure: Callable[[Table], float]) -> dict[str, float]:
    return {str(t): measure(pick(table, trace=t)) for t in np.unique(table["trace"])}


def trace_mean(table: Table, column: str) -> float:
    """Mean over prefixes within a trace, then over traces."""
    return float(np.mean(list(by_trace(table, lambda t: _over_prefixes(t, column)).values())))


def _over_prefixes(table: Table, column: str) -> float:
    return float(np.mean([pick(table, prefix=p)[column].mean() for p in np.unique(table["prefix"])]))


def methods_table(table: Table) -> list[dict[str, Any]]:
    """One line a method and family, and one over all."""
    lines = []
    for family in ["all", *np.unique(table["family"])]:
        part = table if family == "all" else pick(table, family=family)
        for method in dict.fromkeys(part["method"].tolist()):
            own = pick(part, method=method)
            still = {k: v[own["open"]] for k, v in own.items()}
            lines.append({
                "family": str(family), "method": method, "n": len(own["crps"]), "crps": trace_mean(own,
                "crps"),
                "log": trace_mean(own, "log"),
                **{f"cov{int(100 * v)}": _mean_coverage(own, v) for v in LEVELS},
                "brier": _mean_brier(still), "ece": reliability(still["reach"], still["event"]).error,
            })  # fmt: skip
    return lines


def _mean_coverage(table: Table, level: float) -> float:
    return float(np.mean(list(by_trace(table, lambda t: coverage(t["below"], t["upto"], level)).values())))


def _mean_brier(table: Table) -> float:
    if not len(table["reach"]):
        return float("nan")
    return float(np.mean(list(by_trace(table, lambda t: brier(t["reach"], t["event"])).values())))


def prefix_table(table: Table) -> list[dict[str, Any]]:
    """CRPS, coverage and the small-chance audit of Foresail by prefix."""
    lines = []
    for prefix in np.unique(table["prefix"]):
        own = pick(table, method=OURS, prefix=prefix)
        still = {k: v[own["open"]] for k, v in own.items()}
        small = still["reach"] < 0.05
        lines.append({
            "prefix": float(prefix), "crps": trace_mean(own, "crps"), "best_crps": trace_mean(own,
            "best_crps"), **{f"cov{int(100 * v)}": _mean_coverage(own, v) for v in LEVELS},
            "small": int(small.sum()), "said": float(still["reach"][small].mean()),
            "seen": float(still["event"][small].mean()), "tail": tail_ratio(still["reach"], still["event"]),
            "ece": reliability(still["reach"], still["event"]).error,
        })  # fmt: skip
    return lines


def early_table(table: Table) -> list[dict[str, Any]]:
    """CRPS by how much of the study is looked at, before trials have started and soon after."""
    parts = [(float(p), pick(table, prefix=p)) for p in np.unique(table["prefix"])]
    return [{"prefix": p, **{m: trace_mean(pick(t, method=m), "crps") for m in (OURS, "plain", "local")}}
            for p, t in parts]  # fmt: skip


def acceptance(main: Table, early: Table, top: dict[str, dict[str, float]], families: dict[str, str]) -> list[Row]:
    """The acceptance list, from the rows of all prefixes, of the early ones, and from what rankings found."""
    lines = {(x["family"], x["method"]): x for x in methods_table(main)}
    names = [f for f in dict.fromkeys(x["family"] for x in lines.values()) if f != "all"]
    rows = [
        *_crps_rows(main, lines, names),
        *_calibration_rows(main, lines, names),
        *_top_rows(top, families),
        *_view_rows(main, early),
    ]
    return [replace(row, passed=bool(row.passed)) for row in rows]


def _crps_rows(main: Table, lines: dict[tuple[str, str], dict[str, Any]], families: list[str]) -> list[Row]:
    rows = []
    if MCMC in main["method"]:
        rows += _mcmc_rows(main)
    for rival, overall, worst in (("last", 0.55, 0.9), ("last+residuals", 0.72, 1.0)):
        ratio = lines["all", OURS]["crps"] / lines["all", rival]["crps"]
        each = {f: lines[f, OURS]["crps"] / lines[f, rival]["crps"] for f in families}
        rows.append(Row(f"CRPS over {rival}, all", f"{ratio:.3f}", f"<= {overall}", ratio <= overall))
        rows.append(Row(f"CRPS over {rival}, worst family", _worst(each), f"<= {worst}", max(each.values()) <= worst))
    rivals = [m for m in (*BASELINES, MCMC) if ("all", m) in lines]
    best = max(rivals, key=lambda m: lines["all", m]["log"])
    ours = lines["all", OURS]["log"]
    text = f"{ours:.3f} against {lines['all', best]['log']:.3f} ({best})"
    return [
        *rows,
        Row("mean log score above every baseline", text, "above", ours > lines["all", best]["log"]),
    ]


def _mcmc_rows(main: Table) -> list[Row]:
    rival = pick(main, method=MCMC)
    key = set(zip(rival["trace"], rival["prefix"], rival["trial"], strict=True))
    ours = pick(main, method=OURS)
    same = np.array([k in key for k in zip(ours["trace"], ours["prefix"], ours["trial"], strict=True)])
    ours = {k: v[same] for k, v in ours.items()}
    mine, theirs = (by_trace(t, lambda x: _over_prefixes(x, "crps")) for t in (ours, rival))
    ratio = np.mean(list(mine.values())) / np.mean(list(theirs.values()))
    wins = float(np.mean([mine[t] < theirs[t] for t in mine]))
    return [
        Row(
            "CRPS over the 11-family MCMC",
            f"{ratio:.3f} ({len(rival['crps'])} forecasts)",
            "<= 0.45",
            ratio <= 0.45,
        ),
        Row("traces where it is lower", f"{wins:.2f}", ">= 0.9", wins >= 0.9),
    ]


def _worst(each: dict[str, float], largest: bool = True) -> str:
    name = max(each, key=lambda f: each[f]) if largest else min(each, key=lambda f: each[f])
    return f"{each[name]:.3f} ({name})"


def _calibration_rows(main: Table, lines: dict[tuple[str, str], dict[str, Any]], families: list[str]) -> list[Row]:
    rows = []
    for level, tolerance in zip(LEVELS, TOLERANCE, strict=True):
        off = {f: lines[f, OURS][f"cov{int(100 * level)}"] - level for f in families}
        worst = max(off, key=lambda f: abs(off[f]))
        fine = sum(abs(o) <= tolerance for o in off.values())
        text = f"{level + off[worst]:.3f} ({worst}); in {fine} of {len(off)}"
        rows.append(
            Row(
                f"coverage of the {level:.0%} interval, worst family",
                text,
                f"+-{tolerance}",
                abs(off[worst]) <= tolerance,
            )
        )
    ours = pick(main, method=OURS, open=True)
    error = reliability(ours["reach"], ours["event"]).error
    rows.append(Row("calibration error of reach probabilities", f"{error:.4f}", "<= 0.03", error <= 0.03))
    rivals = [m for m in BASELINES if ("all", m) in lines]
    worst_brier = {f: lines[f, OURS]["brier"] / min(lines[f, m]["brier"] for m in rivals) for f in families}
    beaten = max(worst_brier.values()) < 1.0
    rows.append(Row("Brier over the best baseline, worst family", _worst(worst_brier), "< 1", beaten))
    tails = {f"{p:.0%}": tail_ratio(t["reach"], t["event"]) for p in np.unique(main["prefix"])
             if len((t := pick(ours, prefix=p))["reach"])}  # fmt: skip
    rows.append(Row("small chances: seen over said, worst prefix", _worst(tails), "<= 1.5", max(tails.values()) <= 1.5))
    return rows


def _top_rows(top: dict[str, dict[str, float]], families: dict[str, str]) -> list[Row]:
    rows = []
    for which, words, goal in (
        ("plain", "without hyperparameters", 0.0),
        (OURS, "with hyperparameters", 0.0),
    ):
        gain = {}
        for family in dict.fromkeys(families.values()):
            of_family = [top[t] for t in top if families[t] == family]
            gain[family] = float(np.mean([x[which] - x["last"] for x in of_family]))
        share = np.mean([x[which] for x in top.values()])
        last = np.mean([x["last"] for x in top.values()])
        text = f"{share:.3f} against {last:.3f}; worst family {_worst(gain, largest=False)}"
        passed = min(gain.values()) >= goal and (which == "plain" or share > last)
        rows.append(Row(f"top tenth found at 25 % {words}", text, "no family below the last value", passed))
    return rows


def _view_rows(main: Table, early: Table) -> list[Row]:
    per = {m: by_trace(pick(early, method=m), lambda t: _over_prefixes(t, "crps")) for m in (OURS, "local")}
    ratio = np.mean(list(per[OURS].values())) / np.mean(list(per["local"].values()))
    rows = [Row("global view over none, prefixes <= 10 %", f"{ratio:.3f}", "<= 0.85", ratio <= 0.85)]
    whole = {
        m: by_trace(pick(main, method=m), lambda t: _over_prefixes(t, "crps"))
        for m in (OURS, "local", "plain", "permuted")
    }
    each = {t: whole[OURS][t] / whole["local"][t] for t in whole[OURS]}
    rows.append(Row("global view over none, worst trace", _worst(each), "<= 1.02", max(each.values()) <= 1.02))
    for rival in ("plain", "local"):
        ratio = np.mean(list(whole["permuted"].values())) / np.mean(list(whole[rival].values()))
        words = {"plain": "no hyperparameters", "local": "no global view"}[rival]
        rows.append(Row(f"permuted hyperparameters over {words}", f"{ratio:.3f}", "<= 1.02", ratio <= 1.02))
    return rows


def show(lines: list[dict[str, Any]] | list[Row]) -> str:
    """Plain text, one line a row, columns aligned."""
    dicts = [asdict(x) if isinstance(x, Row) else x for x in lines]
    if not dicts:
        return ""
    cells = [[_cell(d.get(k)) for k in dicts[0]] for d in dicts]
    head = list(dicts[0])
    widths = [max(len(r[i]) for r in [head, *cells]) for i in range(len(head))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in [head, *cells])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, bool):
        return "pass" if value else "FAIL"
    return str(value)
