"""Time and space together: what the next second on each trial is worth, and who gets it."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.core import events as ev
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import StudySpec
from foresail.core.view import Trial, View
from foresail.core.words import Act
from foresail.policies.policy import Rng
from foresail.policies.prospects import Prospects


@dataclass(frozen=True)
class Hybrid:
    """`pool`: configurations that wait to be started and are compared by what the study says of them."""

    pool: int = 32
    stick: float = 1.1
    scout: int = 1
    floor: int = 0

    def begin(self, spec: StudySpec) -> Prospects:
        return Prospects.begin(spec)

    def observe(self, index: Prospects, view: View, event: ev.Event) -> bool:
        return index.observe(view, event)

    def decide(self, index: Prospects, view: View, rng: Rng) -> Plan:
        missing = max(0, self.pool - len(view.waiting))
        if missing and view.can_open:
            running = tuple(self._run(index, view, view.trials[a.trial]) for a in view.attempts.values())
            return Plan(running, open=missing)
        held = [view.trials[a.trial] for a in view.attempts.values() if view.trials[a.trial].ended is None]
        inside = [t for t in held if not self._at_look(index, t)]
        at_look = [t for t in held if self._at_look(index, t)]
        free = view.slots - len(inside)
        scored = [(self._score(index, view, t), -t.id, t) for t in at_look]
        scored += [(self._score(index, view, view.trials[n]), -n, view.trials[n]) for n in (*view.suspended, *view.waiting)]
        lead = self._leader(index, view, at_look)
        if lead is not None and free > 0:
            scored.append((float("inf"), 0, lead))
            scored = [s for s in scored if s[2] is not lead or s[0] == float("inf")]
        ranked = None
        if self.floor and free > 0 and not any(self._by_rank(t) for t in inside):
            able = [n for n in (*view.suspended, *(t.id for t in at_look)) if n in index.of]
            found = index.promoted(view, able)
            if found is not None:
                ranked = view.trials[found[0]]
            elif view.waiting:
                ranked, found = view.trials[next(iter(view.waiting))], (0, 1)
            if ranked is not None:
                scored = [s for s in scored if s[2] is not ranked]
                scored.append((float("inf"), 1, ranked))
        scored.sort(key=lambda s: (s[0], s[1]), reverse=True)
        chosen = [t for _, _, t in scored[:max(0, free)]]
        verdicts = [t.verdict if t.verdict and t.verdict.act is Act.RUN else self._run(index, view, t) for t in inside]
        verdicts += [self._run(index, view, t) if t is not ranked else self._rank_run(view, t, found[1]) for t in chosen]
        verdicts += [self._wait(index, view, t) for t in at_look if t not in chosen]
        return Plan(tuple(verdicts))

    def _leader(self, index: Prospects, view: View, at_look: list[Trial]) -> Trial | None:
        if self.scout == 0 or (self.scout == 1 and index.frontier >= 3):
            return None
        live = [*(a.trial for a in view.attempts.values()), *view.suspended]
        known = [n for n in live if n in index.of and index.seen.get(n)]
        best = max(known, key=lambda n: (index.of[n].p, -n), default=None)
        if best is None:
            return None
        trial = view.trials[best]
        return trial if trial in at_look or trial.attempt is None else None

    def _at_look(self, index: Prospects, trial: Trial) -> bool:
        if trial.max_steps is not None and trial.last_step >= trial.max_steps:
            return False
        protected = trial.verdict is not None and trial.last_step < trial.verdict.stage
        return index.at_look(trial) and not protected

    def _score(self, index: Prospects, view: View, trial: Trial) -> float:
        seen = index.of.get(trial.id)
        if seen is None:
            return 0.0
        return self.stick * seen.held if trial.attempt is not None else seen.rate

    def _by_rank(self, trial: Trial) -> bool:
        return trial.verdict is not None and trial.verdict.stage > 0

    def _rank_run(self, view: View, trial: Trial, step: int) -> Verdict:
        return Verdict(trial.id, Act.RUN, Reason(Rule.RUNG_CLIMBING, {"rung_step": step}), view.spec.resources.cores_per_trial, stage=step)

    def _run(self, index: Prospects, view: View, trial: Trial) -> Verdict:
        return Verdict(trial.id, Act.RUN, Reason(Rule.POP_UNSEEN), view.spec.resources.cores_per_trial)

    def _wait(self, index: Prospects, view: View, trial: Trial) -> Verdict:
        return Verdict(trial.id, Act.WAIT, Reason(Rule.POP_UNSEEN))
