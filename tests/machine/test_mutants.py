"""A rule counts only once a deliberate bug has died of it. One bug a case, and the rule that must catch it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.core import events as ev
from foresail.core import view as folding
from foresail.core.commands import Launch
from foresail.core.goal import Goal
from foresail.core.plan import Plan, Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import Choice, StudySpec
from foresail.core.view import Attempt, Checkpoint, Trial, View
from foresail.core.words import Act, Outcome, Status, attempt_id
from foresail.driver.loop import Driver
from foresail.engine import controller as deciding
from foresail.engine import ends, reconcile, retention
from foresail.engine.controller import Controller, Step
from foresail.policies import fifo, median, potential
from foresail.policies.asha import Asha, Ladder
from foresail.testing import foresight, history
from foresail.testing.history import Case, play
from foresail.testing.invariants import Broken, names
from foresail.testing.world import World

SEEDS = 150
Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]
MUTANTS: dict[str, tuple[str, str, Mutant]] = {}


def mutant(rule: str, policy: str = "fifo") -> Callable[[Mutant], Mutant]:
    def known(make: Mutant) -> Mutant:
        MUTANTS[make.__name__] = (rule, policy, make)
        return make

    return known


def handle(patch: Patch, kind: type, handler: Callable[[View, Any], None]) -> None:
    patch.setitem(folding._HANDLERS, kind, handler)


def granting(
    cores: Callable[[View, Trial], Sequence[int]],
    resume: Callable[[Trial], Checkpoint | None],
    *,
    may: Callable[[Trial], bool] = lambda trial: trial.attempt is None and trial.ended is None,
) -> Callable[[View, Verdict], Iterator[reconcile.Move]]:
    """`reconcile._grant` with parts of it exchanged."""

    def grant(view: View, verdict: Verdict) -> Iterator[reconcile.Move]:
        trial = view.trials[verdict.trial]
        free = cores(view, trial)
        if not may(trial) or len(free) < verdict.cores:
            return
        number, saved = trial.attempts + 1, resume(trial)
        granted = ev.AttemptGranted(
            at_s=view.now_s,
            attempt=attempt_id(trial.id, number),
            trial=trial.id,
            number=number,
            cores=tuple(free[: verdict.cores]),
            resume_step=saved.step if saved else 0,
            checkpoint=saved.path if saved else "",
        )
        yield reconcile.Move(granted, reconcile.launch(view, trial, granted))

    return grant


def free_cores(view: View, trial: Trial) -> Sequence[int]:
    return view.free_cores


# --- cores -------------------------------------------------------------------------------------------------------


@mutant("free_cores_add_up")
def cores_are_free_when_asked_for(patch: Patch) -> None:
    """The classic: the core is given on when its holder was asked to leave, not when it has left."""

    def early(view: View, event: ev.AttemptEnding) -> None:
        view.attempts[event.attempt].ending = True
        view.free_cores = sorted({*view.free_cores, *view.attempts[event.attempt].cores})

    handle(patch, ev.AttemptEnding, early)


@mutant("cores_held_once")
def the_same_core_for_everyone(patch: Patch) -> None:
    def careless(view: View, event: ev.AttemptGranted) -> None:
        trial = view.trials[event.trial]
        view.free_cores = [core for core in view.free_cores if core not in event.cores]
        view.attempts[event.attempt] = Attempt(event, known=trial.reached, driver=view.drivers)
        trial.attempt, trial.attempts = event.attempt, event.number
        view.waiting.pop(trial.id, None)
        view.suspended.pop(trial.id, None)

    handle(patch, ev.AttemptGranted, careless)
    patch.setattr(reconcile, "_grant", granting(lambda view, trial: view.cores, lambda trial: trial.checkpoint))


@mutant("cores_of_this_machine")
def one_core_whatever_is_asked(patch: Patch) -> None:
    patch.setattr(fifo, "Verdict", lambda trial, act, reason, cores: Verdict(trial, act, reason, 1))


@mutant("cores_really_free", "asha")
def the_executor_says_gone_too_early(patch: Patch) -> None:
    ask = World._ask

    def lies(self: World, attempt: Any, grace_s: float) -> None:
        ask(self, attempt, grace_s)
        self._inbox.append(ev.AttemptEnded(at_s=0.0, attempt=attempt, outcome=Outcome.YIELDED))

    patch.setattr(World, "_ask", lies)


@mutant("no_more_than_workers", "asha")
def who_leaves_does_not_count(patch: Patch) -> None:
    patch.setattr(View, "slots", property(lambda view: 99 if view.attempts else slots(view)))


slots = View.slots.fget  # type: ignore[attr-defined]


# --- lives -------------------------------------------------------------------------------------------------------


@mutant("one_life_at_a_time")
def two_lives_of_one_trial(patch: Patch) -> None:
    grant_anyone = granting(free_cores, lambda trial: trial.checkpoint, may=lambda trial: True)
    patch.setattr(reconcile, "_grant", grant_anyone)
    grant = folding._attempt_granted

    def unguarded(view: View, event: ev.AttemptGranted) -> None:
        view.trials[event.trial].attempt = None
        grant(view, event)

    handle(patch, ev.AttemptGranted, unguarded)


@mutant("ended_is_final", "median")
def a_verdict_on_the_dead(patch: Patch) -> None:
    judge = median.MedianStopping._judge

    def blind(self: Any, index: Any, view: View, trial: Trial) -> Verdict | None:
        ended, trial.ended = trial.ended, None
        try:
            found = judge(self, index, view, trial)
        finally:
            trial.ended = ended
        if found is None and ended is not None:
            return Verdict(trial.id, Act.END, Reason(Rule.FIRST_IN, {"order": 0.0}))
        return found

    patch.setattr(median.MedianStopping, "_judge", blind)


@mutant("lifecycle_is_legal", "asha")
def a_late_start_cancels_the_wish(patch: Patch) -> None:
    def starts(view: View, event: ev.AttemptStarted) -> None:
        attempt = view.attempts[event.attempt]
        attempt.started_s = attempt.heard_s = event.at_s
        attempt.ending = False

    handle(patch, ev.AttemptStarted, starts)


@mutant("retries_are_bounded")
def retries_without_end(patch: Patch) -> None:
    after = ends.after_attempt

    def patient(view: View, fact: ev.AttemptEnded) -> Iterator[reconcile.Move]:
        return (m for m in after(view, fact) if getattr(m.event, "status", None) is not Status.FAILED)

    patch.setattr(deciding, "after_attempt", patient)


@mutant("diverged_is_over")
def a_diverged_trial_trains_on(patch: Patch) -> None:
    patch.setattr(deciding, "diverged", lambda view, point: iter(()))


@mutant("nothing_left_running")
def the_study_ends_before_its_trials(patch: Patch) -> None:
    finish = Controller._finish

    def hasty(self: Controller, step: Step) -> None:
        attempts, self.view.attempts = self.view.attempts, {}
        over = self.view.ending is not None
        if not over:
            self.view.attempts = attempts
        try:
            finish(self, step)
        finally:
            self.view.attempts = attempts

    patch.setattr(Controller, "_finish", hasty)


# --- points and what follows from them ---------------------------------------------------------------------------


def stale_if(patch: Patch, answer: Callable[[View, Any], bool]) -> None:
    honest = View.is_stale

    def fence(view: View, event: ev.Event) -> bool:
        return answer(view, event) if isinstance(event, ev.PointReported) else honest(view, event)

    patch.setattr(View, "is_stale", fence)


@mutant("fence_holds")
def no_fence(patch: Patch) -> None:
    stale_if(patch, lambda view, event: event.attempt not in view.attempts)


@mutant("no_point_is_lost")
def a_fence_that_wants_a_whole_curve(patch: Patch) -> None:
    """Refuses what a resumed attempt trains again."""
    stale_if(
        patch,
        lambda view, event: (
            event.attempt not in view.attempts
            or event.step <= max(view.attempts[event.attempt].step, view.attempts[event.attempt].known)
        ),
    )


@mutant("checkpoints_are_real")
def a_fence_that_forgets_what_was_saved(patch: Patch) -> None:
    """A doubled report of a checkpoint that has been deleted brings it back, on paper."""
    honest = View.is_stale

    def fence(view: View, event: ev.Event) -> bool:
        if isinstance(event, ev.CheckpointSaved):
            return event.attempt not in view.attempts or event.path in view.checkpoints
        return honest(view, event)

    patch.setattr(View, "is_stale", fence)


@mutant("best_is_best")
def a_diverged_trial_stays_the_best(patch: Patch) -> None:
    patch.setattr(folding, "_find_best", lambda view: None)


@mutant("best_is_best")
def the_best_of_a_step_trained_again(patch: Patch) -> None:
    """A value that was replaced still counts."""
    rewrite = folding._rewrite

    def forgetful(trial: Trial, step: int, value: float, mode: Any) -> None:
        best = trial.best_value, trial.best_step
        rewrite(trial, step, value, mode)
        trial.best_value, trial.best_step = best

    patch.setattr(folding, "_rewrite", forgetful)


@mutant("counts_add_up")
def the_ended_still_wait_their_turn(patch: Patch) -> None:
    ended = folding._trial_ended

    def lingering(view: View, event: ev.TrialEnded) -> None:
        suspended = event.trial in view.suspended
        ended(view, event)
        if suspended:
            view.suspended[event.trial] = None

    handle(patch, ev.TrialEnded, lingering)


# --- decisions ---------------------------------------------------------------------------------------------------


@mutant("planned_before_granted")
def no_plan_is_recorded(patch: Patch) -> None:
    patch.setattr(Verdict, "same_wish", lambda self, other: True)


@mutant("reasons_can_be_read")
def a_reason_without_its_numbers(patch: Patch) -> None:
    patch.setattr(fifo, "Reason", lambda rule, numbers: Reason(rule, {}))


@mutant("nobody_is_forgotten", "asha")
def promoted_and_forgotten(patch: Patch) -> None:
    """ASHA takes a trial from its rung, finds no slot free yet, and never thinks of it again."""
    observe = Asha.observe

    def forgets(self: Asha, index: Ladder, view: View, event: ev.Event) -> bool:
        before = dict(index.interrupted)
        due = observe(self, index, view, event)
        if isinstance(event, ev.Planned):
            index.interrupted = before
        return due

    patch.setattr(Asha, "observe", forgets)


@mutant("nobody_is_forgotten", "asha-stop")
def left_standing_at_its_rung(patch: Patch) -> None:
    """The stopping kind does not judge again who was interrupted at a rung."""
    decide = Asha.decide

    def partial(self: Asha, index: Ladder, view: View, rng: Any) -> Plan:
        kept, index.interrupted = index.interrupted, {}
        for trial in kept:
            if not self._at_rung(index, view.trials[trial]):
                index.interrupted[trial] = None
        try:
            return decide(self, index, view, rng)
        finally:
            index.interrupted = kept

    patch.setattr(Asha, "decide", partial)


@mutant("wishes_become_commands")
def the_end_is_announced_and_nobody_told(patch: Patch) -> None:
    patch.setattr(Controller, "_end_study", lambda self, end: iter((reconcile.Move(end),)))


@mutant("no_start_after_the_end")
def decides_on_after_the_end(patch: Patch) -> None:
    patch.setattr(Controller, "_decides", lambda self, fact: isinstance(fact, ev.Ticked | ev.AttemptEnded))


@mutant("log_verifies")
def decides_by_something_outside_the_log(patch: Patch) -> None:
    """A counter of the process, as good as a clock."""
    ticks = itertools.count()
    patch.setattr(fifo, "Reason", lambda rule, numbers: Reason(rule, {"order": float(next(ticks))}))


@mutant("log_verifies", "asha")
def rungs_are_not_rebuilt(patch: Patch) -> None:
    """Ray Tune's: trials come back after a crash, the scheduler's mind does not."""

    def load(self: Controller, events: Any) -> None:
        for event in events:
            folding.apply(self.view, event)
            self.proposals.begin(event.spec) if isinstance(event, ev.StudyCreated) else None
            self.proposals.observe(event)
        self._index = self.policy.begin(self.view.spec)

    patch.setattr(Controller, "load", load)


@mutant("log_verifies", "pop")
def forecasts_that_are_kept_too_long(patch: Patch) -> None:
    """Made again for every fourth point only; who was not there when they were made decides otherwise."""

    def foresee(self: Any, trials: Sequence[Trial], target: float) -> Any:
        for trial in trials:
            key = (len(trial.values) // 4, target)
            if self.kept.get(trial.id, ((), None))[0] != key:
                self.kept[trial.id] = (key, foresight.plain(self, [trial], target)[trial.id])
        return {trial.id: self.kept[trial.id][1] for trial in trials}

    patch.setattr(potential.Potential, "foresee", foresee)


@mutant("fold_equals_live")
def a_fact_that_is_not_in_the_log(patch: Patch) -> None:
    decide = Controller._decide

    def notes(self: Controller, step: Step) -> None:
        decide(self, step)
        self.view.exhausted = self.view.exhausted or ("soon" if len(self.view.trials) > 3 else "")

    patch.setattr(Controller, "_decide", notes)


# --- time --------------------------------------------------------------------------------------------------------


@mutant("budgets_hold")
def the_deadline_is_not_looked_at(patch: Patch) -> None:
    due = ends.due_end

    def late(view: View) -> ev.StudyEnding | None:
        end = due(view)
        return None if end is not None and end.end == "deadline" else end

    patch.setattr(deciding, "due_end", late)
    nobody_wakes_at_the_deadline(patch)


@mutant("budgets_hold")
def nobody_wakes_at_the_deadline(patch: Patch) -> None:
    blind_to(patch, lambda spec: msgspec.structs.replace(spec, goal=Goal("score", "max", trials=1)))


def blind_to(patch: Patch, without: Callable[[StudySpec], StudySpec]) -> None:
    """Nobody wakes for a part of the study's limits."""
    due = ends.next_deadline_s

    def wakes(view: View) -> float | None:
        spec, view.spec = view.spec, without(view.spec)
        try:
            return due(view)
        finally:
            view.spec = spec

    patch.setattr(deciding, "next_deadline_s", wakes)


@mutant("silence_is_ended")
def nobody_wakes_for_silence(patch: Patch) -> None:
    blind_to(patch, lambda spec: msgspec.structs.replace(spec, silence_s=msgspec.UNSET))


@mutant("silence_is_ended")
def silence_is_not_looked_at(patch: Patch) -> None:
    patch.setattr(deciding, "silent", lambda view: iter(()))


@mutant("the_silent_alone_are_ended")
def only_the_start_is_heard(patch: Patch) -> None:
    """A trial counts as silent since its start, however much it reports."""
    report = folding._point_reported

    def unheard(view: View, event: ev.PointReported) -> None:
        heard_s = view.attempts[event.attempt].heard_s
        report(view, event)
        view.attempts[event.attempt].heard_s = heard_s

    handle(patch, ev.PointReported, unheard)


@mutant("memory_is_remembered")
def memory_is_not_remembered(patch: Patch) -> None:
    """Seen where memory is scarce."""
    launch = World._launch

    def scarce(self: World, command: Launch) -> None:
        launch(self, command)
        worker = self.workers[command.attempt]
        worker.fate = "oom" if worker.fate in ("dies", "raises") else worker.fate

    patch.setattr(World, "_launch", scarce)
    patch.setattr(reconcile, "_has_room", lambda view, cores, trial: True)


@mutant("study_ends")
def wakes_for_ever(patch: Patch) -> None:
    patch.setattr(deciding, "next_deadline_s", lambda view: view.now_s)


@mutant("time_rises")
def decisions_are_dated_back(patch: Patch) -> None:
    def timeless(view: View, event: ev.Event) -> None:
        view.now_s = event.at_s
        view.events += 1
        handler = folding._HANDLERS.get(type(event))
        if handler is not None:
            handler(view, event)

    record = Controller._record

    def dated(self: Controller, step: Step, event: ev.Event) -> None:
        early = isinstance(event, ev.AttemptGranted) and event.at_s > 1.0
        record(self, step, msgspec.structs.replace(event, at_s=event.at_s - 1.0) if early else event)

    patch.setattr(deciding, "apply", timeless)
    patch.setattr(Controller, "_record", dated)


# --- the loop and the disk ---------------------------------------------------------------------------------------


@mutant("granted_before_launched")
def acts_before_it_records(patch: Patch) -> None:
    def hasty(self: Driver, facts: Any) -> None:
        steps = [self.controller.feed(fact) for fact in facts]
        for command in (c for s in steps for c in s.commands):
            self.executor.perform(command)
        events = [e for s in steps for e in s.events]
        if events:
            self.store.append(events, durable=True)

    patch.setattr(Driver, "_handle", hasty)


@mutant("the_living_are_adopted")
def forgets_to_adopt(patch: Patch) -> None:
    patch.setattr(history.MortalExecutor, "adopt", lambda self, attempts: ())


@mutant("wishes_reach_the_world", "asha")
def does_not_ask_again(patch: Patch) -> None:
    """A driver that dies between append and act leaves a wish on record that nobody was told."""
    patch.setattr(Controller, "recover", lambda self: [])


@mutant("resumes_from_the_latest", "asha")
def resumes_from_the_first_checkpoint(patch: Patch) -> None:
    first = granting(free_cores, lambda trial: trial.saved[0] if trial.saved else None)
    patch.setattr(reconcile, "_grant", first)


@mutant("resumes_from_what_is_there")
def resumes_where_the_curve_ended(patch: Patch) -> None:
    """The command names the last step that was reported, the checkpoint is of another."""
    honest = reconcile.launch

    def launch(view: View, trial: Trial, granted: ev.AttemptGranted) -> Any:
        command = honest(view, trial, granted)
        return msgspec.structs.replace(command, resume_step=trial.last_step) if command.checkpoint else command

    patch.setattr(reconcile, "launch", launch)


@mutant("checkpoints_that_are_needed_stay")
def only_the_latest_is_kept(patch: Patch) -> None:
    def superseded(view: View, trial: Trial) -> Iterator[Checkpoint]:
        yield from (c for c in trial.saved if c is not trial.checkpoint)

    patch.setattr(deciding, "superseded", superseded)


@mutant("checkpoints_that_are_needed_stay")
def only_the_best_is_kept(patch: Patch) -> None:
    def superseded(view: View, trial: Trial) -> Iterator[Checkpoint]:
        best = retention.best_of(trial.saved, view.spec.goal.mode)
        yield from (c for c in trial.saved if c is not best)

    patch.setattr(deciding, "superseded", superseded)


def hunt(policy: str) -> None:
    for seed in range(SEEDS):
        play(Case.drawn(seed, Choice(policy)))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_deliberate_bug_dies(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, policy, make = MUTANTS[name]
    make(monkeypatch)
    with pytest.raises(Broken) as caught:
        hunt(policy)
    assert caught.value.name == rule, str(caught.value)


def test_every_rule_has_caught_one() -> None:
    assert set(names()) == {rule for rule, _, _ in MUTANTS.values()}


def test_the_list_of_rules_names_them_all() -> None:
    told = (Path(__file__).parents[2] / "docs" / "invariants.md").read_text()
    for name, (rule, policy, _) in MUTANTS.items():
        assert f"| `{rule}` |" in told
        assert f"`{name}` ({policy})" in told
