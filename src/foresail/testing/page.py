"""Studies to look at: one through the real engine, with training that is played; one whose every text is hostile."""

from __future__ import annotations

import math
import random

from foresail.api.drive import controller_of
from foresail.core import events as ev
from foresail.core.goal import maximize
from foresail.core.plan import Verdict
from foresail.core.reason import Reason, Rule
from foresail.core.spec import Choice, StudySpec
from foresail.core.words import Act, Config, Label, Outcome, Status, TrialId, attempt_id
from foresail.driver.loop import Driver
from foresail.executors.replay import Recording, ReplayExecutor, VirtualClock
from foresail.space import Choice as Pick
from foresail.space import Float, Int, Space
from foresail.stores.memory import MemoryStore

SPACE = Space(
    lr=Float(1e-4, 1.0, log=True),
    momentum=Float(0.0, 0.99),
    width=Int(8, 256, log=True, touches="both"),
    dropout=Float(0.0, 0.8),
    optimizer=Pick(["sgd", "adam"]),
)
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
"""What no page may take for anything but text."""


def one_study(trials: int = 20, points: int = 20, *, policy: str = "pop", cores: int = 4) -> list[ev.Event]:
    """The log of a study that the real engine decided; only the training is played."""
    goal = maximize("accuracy", target=0.985, within=trials * points / 2.0, trials=trials)
    spec = StudySpec(name="digits", space=SPACE.to_dict(), goal=goal, policy=Choice(policy), max_steps=points)
    controller, clock, store = controller_of(spec), VirtualClock(), MemoryStore()
    store.append(controller.feed(ev.StudyCreated(at_s=0.0, spec=spec)).events)
    executor = ReplayExecutor(lambda config: played(config, points), "accuracy", clock)
    Driver(controller, store=store, executor=executor, clock=clock).run(tuple(range(cores)))
    return [event for _, event in store.read()]


def played(config: Config, points: int) -> Recording:
    """A curve that follows from the configuration: best near lr = 0.05, a momentum of 0.9 and a large width."""
    rng = random.Random(repr(sorted(config.items())))
    lr, momentum, width = (float(config[name]) for name in ("lr", "momentum", "width"))
    level = 0.99 - 0.12 * abs(math.log10(lr / 0.05)) - 0.1 * (momentum - 0.9) ** 2 - 0.4 / width
    steps = range(1, points + 1)
    values = [level * (1.0 - 0.7 * 0.5 ** (8.0 * step / points)) + rng.gauss(0.0, 0.004) for step in steps]
    step_s = 0.1 * width**0.5 * rng.uniform(0.9, 1.1)
    return Recording(steps, values, [step_s * step for step in steps])


def hostile_study() -> list[ev.Event]:
    """Markup wherever a person, a configuration or an error message could bring it."""
    space = Space.of({"lr": Float(0.0, 1.0), "kind": Pick([HOSTILE, "plain"])})
    spec = StudySpec(name=HOSTILE, space=space.to_dict(), goal=maximize("accuracy", trials=9), max_steps=4)
    trial, attempt = TrialId(0), attempt_id(TrialId(0), 1)
    verdict = Verdict(trial, Act.RUN, Reason(Rule.POP_UNSEEN), label=Label.OPPORTUNISTIC)
    log: list[ev.Event] = [
        ev.StudyCreated(at_s=0.0, spec=spec),
        ev.DriverStarted(at_s=0.0, cores=(0,), host=HOSTILE),
        ev.TrialProposed(at_s=0.0, trial=trial, config={"lr": 0.5, "kind": HOSTILE}, origin=HOSTILE),
        ev.Planned(at_s=0.0, decision=0, verdicts=(verdict,)),
        ev.AttemptGranted(at_s=0.0, attempt=attempt, trial=trial, number=1, cores=(0,)),
        ev.PointReported(at_s=1.0, attempt=attempt, step=1, metrics={"accuracy": 0.5}, seconds=1.0),
        ev.PointReported(at_s=2.0, attempt=attempt, step=2, metrics={"accuracy": math.nan}, seconds=1.0),
        ev.AttemptEnded(at_s=3.0, attempt=attempt, outcome=Outcome.FAILED, detail=HOSTILE, exit_code=1),
        ev.TrialEnded(at_s=3.0, trial=trial, status=Status.FAILED, detail=HOSTILE),
        ev.StudyEnding(at_s=3.0, end="failing", why=HOSTILE),
        ev.StudyEnded(at_s=3.0, end="failing", why=HOSTILE),
    ]
    return log
