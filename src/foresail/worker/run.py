"""The handle that a training function gets: its configuration, its steps, its reports, its state."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from foresail.core.layout import Layout
from foresail.core.words import Scalar, TrialId
from foresail.errors import HostError, TrainingError, nearest
from foresail.worker.folder import StudyFolder
from foresail.worker.grant import Grant
from foresail.worker.metrics import Metrics, check_step
from foresail.worker.moments import Moments
from foresail.worker.ranks import Ranks
from foresail.worker.share import Batch, Order, Shared, batch_of, loader_of
from foresail.worker.spool import Horizon, Note, Point, Saved, Spool, to_wire
from foresail.worker.state import Kept, load_files, restore_randomness


class Yielded(BaseException):
    """Leaves the training function after its state was saved. Like `SystemExit`: `finally` blocks run."""


class Killed(BaseException):
    """Ends a training function where it stands, at our wish; `finally` blocks run."""


class Configuration(Mapping[str, Scalar]):
    """The values of the knobs: `config["lr"]` or `config.lr`."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Scalar]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"no knob {name!r}; {nearest(name, self._values)}") from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"no knob {name!r}; {nearest(name, self._values)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __repr__(self) -> str:
        return f"Configuration({self._values})"


class Run:
    """One life of a trial, seen from its training code.

    Args:
        grant: what the process was told.
        spool: where it speaks; the attempt's own if not given.
        rank: which of the attempt's processes this is.
    """

    def __init__(self, grant: Grant, *, spool: Spool | None = None, rank: int = 0) -> None:
        self._study = StudyFolder(Path(grant.root))
        self._grant = grant
        self._home = self._study.attempt(grant.attempt)
        self._folder = self._home.of_rank(rank)
        self._ranks = Ranks(grant.layout, rank)
        self._wide: Any = None
        self._wish = os.fspath(self._home.wish)
        self._spool = spool or Spool(self._folder.spool)
        self._metrics = Metrics(grant.goal.metric)
        self._kept = Kept()
        self._resume_from, self._step = _resume(self._study, grant)
        self._reported_step = self._resume_step = self._step
        self._reported: dict[str, float] = {}
        self._best = grant.best
        self._improved = self._looping = self._wished = self._saving = self._doomed = False
        self._config = Configuration(grant.config)
        self._mark_s = perf_counter()
        self._moments = Moments(self._mark_s)
        self.heeded = False

    # --- what it was given ---------------------------------------------------------------------------------------

    @property
    def config(self) -> Configuration:
        """The values of the knobs."""
        return self._config

    @property
    def seed(self) -> int:
        """The trial's seed: the same in each of its attempts, another in each trial."""
        return self._grant.seed

    @property
    def trial(self) -> TrialId:
        """The trial's number."""
        return self._grant.trial

    @property
    def folder(self) -> Path:
        """A folder of this process's own, for whatever the training code likes to leave there."""
        return self._folder.path

    @property
    def resume_step(self) -> int:
        """Steps that were completed when this attempt began: 0 for a fresh start."""
        return self._resume_step

    @property
    def should_stop(self) -> bool:
        """Whether the trial is asked to leave. For code without `steps()`: return soon when it is true.

        Of several ranks all ask equally often; all get the same answer.
        """
        self.heeded = self.heeded or self._ranks.agree(step=0, leave=self._is_wished())[0]
        return self.heeded

    # --- several ranks -------------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """Which of the attempt's processes this is, from 0. Rank 0's reports are the trial's."""
        return self._ranks.rank

    @property
    def layout(self) -> Layout:
        """How the attempt's ranks share the work."""
        return self._grant.layout

    def meet(self) -> None:
        """Wait for the other ranks. Called before the training function."""
        self._ranks.meet(self._home.path)

    def parallelize(self, model: Any, plan: dict[str, Any] | None = None) -> Any:
        """The model over the ranks of this attempt; make the optimizer from what this gives.

        Replicas: DDP, or `fully_shard` where they share the state. Tensor parallel: `plan`, as torch's
        `parallelize_module` takes it, or pairs of linear layers that are found. Pipeline: an `nn.Sequential` is cut
        into stages. Track model and optimizer as always; what one layout saves, any other loads.

        Raises:
            TrainingError: the model cannot be cut so.
        """
        return self._parallel().parallelize(model, plan)

    def _parallel(self) -> Any:
        if self._wide is None:
            from foresail.worker.wide import Wide  # torch, which only such trainings need

            self._wide = Wide(self._ranks, seed=self.seed)
            self._kept.special = self._wide.ways
        return self._wide

    def backward(self, model: Any, loss: Callable[[Any, Any], Any], inputs: Any, targets: Any) -> float:
        """Add the gradients of the mean loss over the global batch; returns that loss, the same on all ranks.

        Args:
            model: what `parallelize` gave.
            loss: `loss(outputs, targets)`, a mean over samples.
            inputs: this rank's share of the batch, samples first.
            targets: of the same samples.
        """
        return float(self._parallel().backward(model, loss, inputs, targets))

    def batch(self, size: int) -> Batch:
        """How a global batch of `size` samples is cut into shares and micro-batches.

        Raises:
            TrainingError: it cannot be cut evenly.
        """
        return batch_of(self._ranks, size)

    def shard(
        self,
        source: Any,
        *,
        batch: int | None = None,
        shuffle: bool = True,
        workers: int | Literal["auto"] = 0,
    ) -> Any:
        """This rank's share of each global batch; the global batches are the same at any width.

        Args:
            source: a data set, or a sampler of global batches that draws the same on all ranks (track its generator).
            batch: of a data set, samples of a global batch; gives a `DataLoader`. Its order follows from the trial's
                seed and the step, so there is nothing to track; an incomplete last batch is left out.
            shuffle: of a data set.
            workers: of a data set, processes that load beside the training; "auto": as many as hide the loading, if
                passes over the data get faster by them.

        Raises:
            TrainingError: replicas cannot share a batch evenly.
        """
        if batch is None:
            return Shared(source, self._ranks)
        batch_of(self._ranks, batch)
        order = Order(len(source), batch, shuffle=shuffle, seed=self.seed, step=lambda: self._step)
        return loader_of(source, order, self._ranks, workers)

    def mean(self, value: Any) -> Any:
        """The mean of a number or a tensor over the replicas, the same on all ranks; all call it."""
        return self._ranks.mean(value)

    # --- steps and reports ---------------------------------------------------------------------------------------

    def steps(self, max: int | None = None) -> Iterator[int]:
        """The numbers of the steps to do, from 1: `for epoch in run.steps(max=50)` gives 1, 2, ..., 50.

        A resumed trial gets those that are left. When the loop body of step k is over, k steps are completed: the
        point reported in it is the point of step k, and checkpoints are taken there. A wish to suspend leaves the
        loop, and the training function with it, by `Yielded`: `with` and `finally` blocks run, code after the loop
        does not. Where nothing is tracked and no function saves, no checkpoint is made, and a trial that was
        suspended starts again from its first step.

        Args:
            max: steps of the whole training, those of earlier attempts included; None: until the loop is left.

        Raises:
            TrainingError: `max` is no whole number from 1.
        """
        if max is not None:
            max = check_step(max, 0)
            if self.rank == 0:
                self._spool.write(Horizon(max_steps=max))
        while max is None or self._step < max:
            if not self._looping:
                if self._ranks.agree(step=self._step, leave=self._is_wished())[0]:
                    raise Yielded  # nothing is done yet, so nothing is to be saved
                self._looping = True
                restore_randomness(self._resume_from, self._ranks, self.seed)
                self._mark_s = perf_counter()
            self._step += 1
            yield self._step
            self._boundary(last=self._step == max)

    def report(self, step: int | None = None, **metrics: Any) -> None:
        """Report the metrics of a step; returns at once.

        Args:
            step: number of completed steps, rising; left out: the step of `steps()` that is being done, or without
                such a loop one more than in the last report.
            metrics: numbers by name, the goal's metric among them; NaN and infinity are allowed (the trial is then
                ended as diverged). The first report fixes the names.

        Raises:
            TrainingError: a value is no number, a name is new, the goal's metric is missing, or the step falls.
        """
        values = self._metrics.check(metrics)
        if step is None:
            step = self._step if self._looping else self._reported_step + 1
        step = check_step(step, self._reported_step)
        now_s = perf_counter()
        if self.rank == 0:
            self._spool.write(Point(step=step, metrics=to_wire(values), seconds=now_s - self._mark_s))
        self._mark_s = now_s
        self._reported_step, self._reported = step, values
        self._note(values[self._grant.goal.metric])

    def expect(self, max_steps: int) -> None:
        """Say how many steps the whole training will do, where no `steps(max=...)` does.

        Raises:
            TrainingError: `max_steps` is no whole number from 1.
        """
        self._spool.write(Horizon(max_steps=check_step(max_steps, 0)))

    def note(self, **notes: Any) -> None:
        """Have something remembered of the trial that no decision rests on: the data's version, a final test score.

        Args:
            notes: plain data by name: texts, numbers, truth values, None, and lists and dicts of them.

        Raises:
            TrainingError: JSON cannot hold a value.
        """
        try:
            self._spool.write(Note(notes=notes))
        except (TypeError, ValueError) as error:
            raise TrainingError(f"note(): {error}", allowed="texts, numbers, lists and dicts of them") from None

    def _note(self, value: float) -> None:
        self._improved = value == value and self._grant.goal.better(value, self._best)
        if self._improved:
            self._best = value

    # --- state ---------------------------------------------------------------------------------------------------

    def track(self, **objects: Any) -> None:
        """Keep the state of these objects: saved at checkpoints, restored here and now where the trial resumes.

        Args:
            objects: by name, anything with `state_dict` and `load_state_dict`; also generators of random numbers of
                torch, numpy and `random`. The global random states are always kept.

        Raises:
            TrainingError: an object has no state to take, or the checkpoint knows none of it.
        """
        for name, thing in objects.items():
            self._kept.track(name, thing, self._resume_from)

    def on_save(self, function: Callable[[Path], object]) -> Callable[[Path], object]:
        """Call `function(folder)` at each checkpoint, to write files there. Works as a decorator."""
        self._kept.on_save(function)
        return function

    def on_load(self, function: Callable[[Path], object]) -> Callable[[Path], object]:
        """Call `function(folder)` here and now where the trial resumes from what `on_save` wrote."""
        load_files(self._resume_from, function)
        return function

    @property
    def has_improved(self) -> bool:
        """Whether the last report was the trial's best so far."""
        return self._improved

    @property
    def is_save_due(self) -> bool:
        """Whether a checkpoint will be asked for when the step that was reported last is over. For frameworks that save
        at a moment of their own."""
        return bool(self._kept) and (self._is_wished() or self._is_worth_saving(last=False))

    def _boundary(self, *, last: bool) -> None:
        worth = bool(self._kept) and self._is_worth_saving(last=last)
        leave, save = self._ranks.agree(
            step=self._step, last=last, leave=not last and self._is_wished(), save=worth and self.rank == 0
        )
        if save or (leave and self._kept):
            self._save()
        if leave:
            raise Yielded
        self._improved = False

    def _is_worth_saving(self, *, last: bool) -> bool:
        goal = self._grant.goal
        fresh = self._reported_step == self._step
        if fresh and goal.reached(self._reported.get(goal.metric)):
            return True
        improved = fresh and self._improved
        return (last and improved) or self._moments.is_due(perf_counter(), improved=improved)

    def _save(self) -> None:
        self._saving = True
        self._write_checkpoint()
        self._saving = False
        if self._doomed:
            raise Killed

    def _write_checkpoint(self) -> None:
        from foresail.worker import checkpoint  # here, since a training that only reports should start at once

        began_s = perf_counter()
        metrics = self._reported if self._reported_step == self._step else {}
        fill = self._kept.take(self._ranks)
        if self.rank:
            return
        try:
            written = checkpoint.write(self._study, self._grant.trial, self._step, metrics=metrics, fill=fill)
        except HostError as error:
            warnings.warn(f"{error}; training goes on without", RuntimeWarning)
            self._moments.note(perf_counter(), perf_counter() - began_s)
            return
        seconds = perf_counter() - began_s
        self._mark_s += seconds  # saving is not training
        self._moments.note(began_s + seconds, seconds)
        self._spool.write(
            Saved(
                step=self._step,
                path=self._study.relative(written.path),
                bytes=written.bytes,
                digest=written.digest,
                seconds=seconds,
            )
        )

    def end_now(self) -> None:
        """From a signal handler: end where it stands; a save that is under way is finished first.

        Raises:
            Killed: always, here or at the end of the save.
        """
        self._doomed = True
        if not self._saving:
            raise Killed

    def ask_to_leave(self) -> None:
        """From outside, as a signal does: leave at the next step boundary."""
        self._wished = True

    def _is_wished(self) -> bool:
        if not self._wished and os.path.exists(self._wish):
            self._wished = True
        return self._wished


def _resume(study: StudyFolder, grant: Grant) -> tuple[Path | None, int]:
    """Where to take the state from, and the steps completed there."""
    if not grant.checkpoint:
        return None, 0
    from foresail.worker import checkpoint

    found = checkpoint.newest_whole(study, grant.trial, grant.resume_step)
    if found is None:
        warnings.warn("no checkpoint of this trial is whole; it starts from its first step", RuntimeWarning)
        return None, 0
    return found[0], found[1].step
