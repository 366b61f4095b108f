"""From the wish to the world: the only maker of commands for attempts.

The order is fixed: end, ask to yield, and only then grant what is free as a fact. Cores belong to an attempt until its
end is recorded, not until it was asked to leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import UnsetType
from msgspec.structs import replace

from foresail.core import events as ev
from foresail.core.commands import Command, Kill, Launch, Yield
from foresail.core.plan import Plan, Verdict
from foresail.core.view import Attempt, Trial, View
from foresail.core.words import Act, Status, attempt_id
from foresail.errors import InternalError


@dataclass(frozen=True, slots=True)
class Move:
    """A decision and the effect that it asks for, if any."""

    event: ev.Decision
    command: Command | None = None


def reconcile(view: View, plan: Plan) -> Iterator[Move]:
    """What must happen now so that the world comes nearer to `plan`. Apply each event before taking the next.

    Raises:
        InternalError: the plan says nothing of a trial that holds cores and was not asked to leave.
    """
    wanted = {verdict.trial: verdict for verdict in plan.verdicts}
    for attempt in tuple(view.attempts.values()):
        if view.trials[attempt.trial].ended is not None:
            continue  # it is leaving
        if attempt.trial not in wanted:
            if attempt.ending:
                continue  # it is leaving, whatever is wished
            raise InternalError(f"the plan is silent on trial {attempt.trial}, which holds cores {attempt.cores}")
        yield from _take_back(view, attempt, wanted[attempt.trial])
    for verdict in plan.verdicts:
        if verdict.act is Act.END:
            yield from _end(view, verdict)
    for verdict in plan.verdicts:
        if verdict.act is Act.RUN:
            yield from _grant(view, verdict)
            if _waits_for_room(view, verdict):
                break  # who comes after it would keep it waiting


def usable(view: View, plan: Plan) -> Plan:
    """The plan with widths at which trials keep their batches."""
    resources = view.spec.resources
    if isinstance(resources.parallel, UnsetType):
        return plan
    widths = (resources.usable(v.cores, view.trials[v.trial].config) for v in plan.verdicts)
    return replace(plan, verdicts=tuple(replace(v, cores=n) for v, n in zip(plan.verdicts, widths, strict=True)))


def _take_back(view: View, attempt: Attempt, verdict: Verdict) -> Iterator[Move]:
    resize = verdict.act is Act.RUN and verdict.cores != len(attempt.cores)
    if (verdict.act is Act.WAIT or resize) and not attempt.ending:
        yield ask_to_leave(view, attempt)


def remind(view: View) -> Iterator[Command]:
    """What was asked of attempts that are still here: an earlier driver may have recorded it and not done it."""
    for attempt in view.attempts.values():
        if attempt.ending:
            over = view.trials[attempt.trial].ended is not None
            yield Kill(attempt.id) if over else Yield(attempt.id, view.spec.grace_s)


def ask_to_leave(view: View, attempt: Attempt) -> Move:
    """A checkpoint at the next step boundary, then the end."""
    leave = ev.AttemptEnding(at_s=view.now_s, attempt=attempt.id)
    return Move(leave, Yield(attempt.id, view.spec.grace_s))


def _end(view: View, verdict: Verdict) -> Iterator[Move]:
    trial = view.trials[verdict.trial]
    if trial.ended is None:
        yield from end_trial(view, trial, Status.ENDED, verdict.reason.sentence())


def end_trial(view: View, trial: Trial, status: Status, detail: str) -> Iterator[Move]:
    """The trial ends; its processes, if any, are ended too."""
    live = view.attempts[trial.attempt] if trial.attempt is not None else None
    yield Move(ev.TrialEnded(at_s=view.now_s, trial=trial.id, status=status, detail=detail))
    if live is not None:
        yield Move(ev.AttemptEnding(at_s=view.now_s, attempt=live.id), Kill(live.id))


def _grant(view: View, verdict: Verdict) -> Iterator[Move]:
    trial = view.trials[verdict.trial]
    if trial.ended is not None or trial.attempt is not None:
        return
    cores = _free_together(view, verdict.cores, trial)
    if not cores or len(view.attempts) >= view.slots:
        return  # who leaves has not left yet
    checkpoint = trial.checkpoint
    granted = ev.AttemptGranted(
        at_s=view.now_s,
        attempt=attempt_id(trial.id, trial.attempts + 1),
        trial=trial.id,
        number=trial.attempts + 1,
        cores=cores,
        resume_step=checkpoint.step if checkpoint else 0,
        checkpoint=checkpoint.path if checkpoint else "",
    )
    yield Move(granted, launch(view, trial, granted))


def _free_together(view: View, count: int, trial: Trial) -> tuple[int, ...]:
    """So many free cores of one machine, the one that they leave least free; nothing where none has them."""
    free = set(view.free_cores)
    by_machine = ([core for core in machine if core in free] for machine in view.machines)
    fits = [cores for cores in by_machine if len(cores) >= count and _has_room(view, cores, trial)]
    tightest = min(fits, key=len, default=[])
    return tuple(sorted(tightest)[:count])


def _has_room(view: View, cores: Sequence[int], trial: Trial) -> bool:
    """Whether the machine of these cores has memory for one more, by what is known of the trial and of those there."""
    there = view.neighbours(cores)
    rooms = [t.room for t in (trial, *(view.trials[a.trial] for a in there)) if t.room is not None]
    return not rooms or len(there) < min(rooms)


def _waits_for_room(view: View, verdict: Verdict) -> bool:
    """Whether a trial that ran out of memory waits for a machine with fewer neighbours."""
    trial = view.trials[verdict.trial]
    return trial.room is not None and trial.attempt is None and trial.ended is None


def launch(view: View, trial: Trial, granted: ev.AttemptGranted) -> Launch:
    """The command that makes a grant real."""
    return Launch(
        attempt=granted.attempt,
        trial=trial.id,
        number=granted.number,
        config=trial.config,
        cores=granted.cores,
        devices=granted.devices,
        resume_step=granted.resume_step,
        checkpoint=granted.checkpoint,
        seed=view.spec.seed * 1_000_003 + trial.id,
        best=trial.best_value,
        layout=replace(view.spec.resources.layout(len(granted.cores)), halvings=trial.shortages),
    )
