"""The story of a trial, from the log: its decisions with their numbers, its attempts, how it ended, its files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from foresail.api import wording
from foresail.api.recorded import view_of
from foresail.api.speeds import StepTime, folded, step_time, told_of
from foresail.api.summary import traces
from foresail.core import events as ev
from foresail.core.plan import Verdict
from foresail.core.words import Act, Config, Status, TrialId, attempt_id, trial_of
from foresail.errors import CallerError
from foresail.worker.folder import StudyFolder

LAST_LINES = 15
"""Lines of the traceback that are shown; the whole is in its file."""


_WANTED = {Act.RUN: "let it run", Act.WAIT: "let it leave its cores and wait", Act.END: "end it"}
"""What a decision wants. What comes of it is in the lines that follow: a trial that is asked to leave trains on until
its step is done, and may be given cores again at once."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """Something that happened to a trial. `event` and `data` are as recorded, `text` is for people."""

    at_s: float
    event: str
    text: str
    data: dict[str, object]


@dataclass(frozen=True, slots=True)
class Point:
    """What was reported at a step, by which attempt."""

    at_s: float
    attempt: str
    step: int
    seconds: float
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class Story:
    """A trial in full. `status` and what follows from it are as the log stands."""

    study: str
    storage: str
    trial: int
    status: str
    label: str | None
    why: str
    origin: str
    config: Config
    metric: str
    best: float | None
    best_step: int
    steps: int
    max_steps: int | None
    seconds: float
    device_s: float
    step: StepTime | None
    chapters: list[Chapter]
    points: list[Point]
    outputs: list[str]
    tracebacks: list[str]


def story_of(events: Sequence[ev.Event], number: int, storage: Path, folder: Path) -> Story:
    """The story of trial `number` in the log `events` of `storage`.

    Raises:
        CallerError: there is no such trial.
    """
    view_of(events[:1], storage)
    view, speeds = folded(events)
    if not 0 <= number < len(view.trials):
        known = f"trials 0 to {len(view.trials) - 1}" if view.trials else "no trial yet"
        raise CallerError(f"there is no trial {number} in {storage}", allowed=known, do="foresail status lists them")
    trial = view.trials[number]
    verdict = trial.verdict
    return Story(
        study=view.spec.name,
        storage=str(storage),
        trial=number,
        status=str(view.status(trial)),
        label=str(verdict.label) if verdict and verdict.label else None,
        why=trial.detail or (verdict.reason.sentence() if verdict else ""),
        origin=trial.origin,
        config=dict(trial.config),
        metric=view.spec.goal.metric,
        best=trial.best_value,
        best_step=trial.best_step,
        steps=trial.last_step,
        max_steps=trial.max_steps,
        seconds=trial.seconds,
        device_s=trial.device_s,
        step=step_time(view, speeds, trial),
        chapters=chapters_of(events, trial.id, is_script=bool(view.spec.entry.command)),
        points=points_of(events, trial.id),
        outputs=outputs_of(trial.id, trial.attempts, folder),
        tracebacks=[str(place) for place in traces(trial.id, trial.attempts, folder)],
    )


# --- what happened -----------------------------------------------------------------------------------------------


def chapters_of(events: Iterable[ev.Event], trial: TrialId, *, is_script: bool) -> list[Chapter]:
    """What happened to a trial. `events`: a log, or what of it tells of the trial."""
    return [chapter for event in events for chapter in _chapters(event, trial, is_script)]


def points_of(events: Iterable[ev.Event], trial: TrialId) -> list[Point]:
    """What a trial reported; `events` as `chapters_of`."""
    return [_point(e) for e in events if isinstance(e, ev.PointReported) and trial_of(e.attempt) == trial]


def _chapters(event: ev.Event, trial: TrialId, is_script: bool) -> Iterator[Chapter]:
    match event:
        case ev.Planned(decision=decision, verdicts=verdicts):
            for verdict in verdicts:
                if verdict.trial == trial:
                    yield _decision(event.at_s, decision, verdict)
        case ev.TrialProposed() | ev.AttemptGranted() | ev.TrialEnded() if event.trial == trial:
            yield _plain(event, _of_trial(event, is_script=is_script))
        case ev.StudyEnding(end=end, why=why):
            yield _plain(event, f"the study ends ({end}): {why}")
        case ev.CheckpointDeleted(path=path) if trial_of_checkpoint(path) == trial:
            yield _plain(event, f"checkpoint deleted, nothing needs it any more: {path}")
        case (
            ev.AttemptStarted()
            | ev.HorizonDeclared()
            | ev.CheckpointSaved()
            | ev.AttemptEnding()
            | ev.AttemptSilent()
            | ev.AttemptEnded()
        ) if trial_of(event.attempt) == trial:
            yield _plain(event, _of_attempt(event))


def _plain(event: ev.Event, text: str) -> Chapter:
    data = {name: getattr(event, name) for name in event.__struct_fields__ if name != "at_s"}
    return Chapter(event.at_s, type(event).__name__, text, data)


def _decision(at_s: float, decision: int, verdict: Verdict) -> Chapter:
    label = f", {verdict.label}" if verdict.label else ""
    text = f"decision {decision}: {_WANTED[verdict.act]}{label}: {verdict.reason.sentence()}"
    data = {
        "decision": decision,
        "act": str(verdict.act),
        "label": str(verdict.label) if verdict.label else None,
        "cores": verdict.cores,
        "stage": verdict.stage,
        "rule": str(verdict.reason.rule),
        "numbers": dict(verdict.reason.numbers),
    }
    return Chapter(at_s, "Planned", text, data)


def _of_trial(event: ev.TrialProposed | ev.AttemptGranted | ev.TrialEnded, *, is_script: bool) -> str:
    match event:
        case ev.TrialProposed(origin=origin):
            return f"proposed by {origin}"
        case ev.AttemptGranted(attempt=attempt, cores=cores, number=number, resume_step=step):
            start = f"goes on from its checkpoint of step {step}" if step else "starts from nothing"
            if is_script and number > 1:
                start = "is called again, and finds what it has kept itself"
            held = "core" if len(cores) == 1 else "cores"
            return f"attempt {attempt} gets {held} {', '.join(map(str, cores))}; it {start}"
        case ev.TrialEnded(status=status, detail=detail):
            verb = "is ended by the policy" if status is Status.ENDED else f"has {status}"
            return f"the trial {verb}" + (f": {detail}" if detail else "")


def _of_attempt(
    event: ev.AttemptStarted
    | ev.HorizonDeclared
    | ev.CheckpointSaved
    | ev.AttemptEnding
    | ev.AttemptSilent
    | ev.AttemptEnded,
) -> str:
    match event:
        case ev.AttemptStarted(attempt=attempt, pid=pid):
            return f"attempt {attempt} runs" + (f" as process {pid}" if pid else "")
        case ev.HorizonDeclared(max_steps=steps):
            return f"it wants to do {steps} steps"
        case ev.CheckpointSaved(step=step, path=path, bytes=count):
            return f"checkpoint of step {step} saved, {wording.size(count)}: {path}"
        case ev.AttemptEnding(attempt=attempt):
            return f"attempt {attempt} is asked to leave"
        case ev.AttemptSilent(attempt=attempt, silent_s=silent_s):
            return f"attempt {attempt} has said nothing for {wording.duration(silent_s)}, the limit: it has failed"
        case ev.AttemptEnded(attempt=attempt, outcome=outcome, detail=detail, exit_code=code):
            text = f"attempt {attempt} ended: {str(outcome).replace('_', ' ')}"
            return text + (f", exit code {code}" if code else "") + (f": {detail}" if detail else "")


def trial_of_checkpoint(path: str) -> TrialId | None:
    """Whose checkpoint this is, from its place in the study's folder."""
    parts = path.split("/")
    return TrialId(int(parts[1])) if len(parts) > 1 and parts[1].isdecimal() else None


def _point(event: ev.PointReported) -> Point:
    return Point(event.at_s, event.attempt, event.step, event.seconds, dict(event.metrics))


def outputs_of(trial: TrialId, attempts: int, folder: Path) -> list[str]:
    """Files with what the first `attempts` attempts printed."""
    lives = (StudyFolder(folder).attempt(attempt_id(trial, n + 1)) for n in range(attempts))
    files = (file for attempt in lives for file in (attempt.stdout, attempt.stderr))
    return [str(file) for file in files if file.is_file() and file.stat().st_size]


# --- for people --------------------------------------------------------------------------------------------------


def told(story: Story, *, width: int = 120) -> str:
    """The story as text; lines are cut at `width` where they tell of files no more than once."""
    parts = ["\n".join(_head(story)), "\n".join(_times(story)), "\n".join(_files(story))]
    return "\n\n".join(part for part in parts if part)


def _head(story: Story) -> Iterator[str]:
    label = f", {story.label}" if story.label else ""
    yield f"trial {story.trial} of {story.study}: {story.status}{label}" + (f": {story.why}" if story.why else "")
    yield f"  {wording.config(story.config)}"
    if story.best is not None:
        yield f"  best {story.metric} = {wording.number(story.best)} at step {story.best_step}"
    of = f" of {story.max_steps}" if story.max_steps else ""
    cost = f"{wording.duration(story.seconds)} of training, {wording.duration(story.device_s)} of core time"
    yield f"  {story.steps}{of} steps, {cost}"
    if story.step is not None:
        yield f"  {told_of(story.step)}"


def _times(story: Story) -> Iterator[str]:
    for at_s, _, text in happenings(story.chapters, story.points, story.metric):
        yield f"{wording.duration(at_s):>12}  {text}"


def happenings(chapters: Iterable[Chapter], points: Sequence[Point], metric: str) -> Iterator[tuple[float, str, str]]:
    """(study seconds, event, text) in the order of the log; the points between two chapters are one of them."""
    at = 0
    for chapter in chapters:
        start, at = at, bisect_right(points, chapter.at_s, at, key=lambda point: point.at_s)
        yield from _run_of_points(points[start:at], metric)
        yield chapter.at_s, chapter.event, chapter.text
    yield from _run_of_points(points[at:], metric)


def _run_of_points(run: Sequence[Point], metric: str) -> Iterator[tuple[float, str, str]]:
    """One line tells of all of them."""
    if not run:
        return
    values = [wording.number(point.metrics.get(metric)) for point in (run[0], run[-1])]
    steps = f"step {run[0].step}" if len(run) == 1 else f"steps {run[0].step} to {run[-1].step}"
    value = values[0] if len(run) == 1 else " to ".join(values)
    took = wording.duration(sum(point.seconds for point in run))
    yield run[-1].at_s, "PointReported", f"{steps}: {metric} {value}, in {took}"


def _files(story: Story) -> Iterator[str]:
    if story.tracebacks:
        yield f"what it said when it failed, {story.tracebacks[-1]}:"
        lines = Path(story.tracebacks[-1]).read_text(encoding="utf-8", errors="replace").splitlines()
        if len(lines) > LAST_LINES:
            yield f"    ... {len(lines) - LAST_LINES} lines before"
        yield from (f"    {line}" for line in lines[-LAST_LINES:])
    if story.outputs:
        yield "what it printed:"
        yield from (f"    {file}" for file in story.outputs)
