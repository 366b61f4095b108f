"""Laws of the page's history: what is sent in pieces is what is sent at once, and a past moment is a fold up to it."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.core import events as ev
from foresail.core.view import fold
from foresail.core.words import Status
from foresail.page.history import STATUSES, Changes, History, follow
from foresail.testing.strategies import logs


class Page:
    """What a page has after merging; as `merge` of page.js does it."""

    def __init__(self) -> None:
        self.configs: dict[int, Any] = {}
        self.trials: dict[int, Any] = {}
        self.curves: dict[int, dict[int, float | None]] = {}
        self.lives: dict[tuple[int, int], Any] = {}
        self.bests: list[Any] = []
        self.study: Any = None
        self.event = 0

    def merge(self, changes: Changes) -> Page:
        sent: Any = msgspec.json.decode(msgspec.json.encode(changes))
        if sent["since"] == 0:
            self.__init__()  # type: ignore[misc]
        assert sent["since"] == self.event
        self.configs |= {config[0]: config[1:] for config in sent["configs"]}
        self.trials |= {row[0]: row[1:] for row in sent["trials"]}
        for trial, *pairs in sent["points"]:
            self.curves.setdefault(trial, {}).update(zip(pairs[::2], pairs[1::2], strict=True))
        self.lives |= {(life[0], life[1]): life[2:] for life in sent["lives"]}
        self.bests += sent["bests"]
        self.study, self.event = sent["study"], sent["event"]
        return self

    @property
    def all(self) -> Any:
        return [self.configs, self.trials, self.curves, self.lives, self.bests, self.study, self.event]


@given(logs(), st.data())
@settings(deadline=None)
def test_increments_make_what_a_fresh_page_gets(log: list[ev.Event], data: st.DataObject) -> None:
    history = follow(History(), log)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=4)))
    every = data.draw(st.integers(1, 3))
    page = Page()
    for cut in cuts:
        page.merge(history.changes(page.event, cut, every))
    page.merge(history.changes(page.event, every=every))
    assert page.all == Page().merge(history.changes(0, every=every)).all


@given(logs(), st.data())
@settings(deadline=None)
def test_a_page_that_is_open_while_the_log_grows_has_the_same(log: list[ev.Event], data: st.DataObject) -> None:
    history, page, start = History(), Page(), 0
    for cut in [*sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=4))), len(log)]:
        follow(history, log[start:cut])
        page.merge(history.changes(page.event))
        start = cut
    assert page.all == Page().merge(history.changes(0)).all


@given(logs(), st.data())
@settings(deadline=None)
def test_a_past_moment_is_the_study_as_it_stood_then(log: list[ev.Event], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log)))
    then = Page().merge(follow(History(), log[:cut]).changes(0))
    assert Page().merge(follow(History(), log).changes(0, cut)).all == then.all


@given(logs(), st.data())
@settings(deadline=None)
def test_it_says_what_the_fold_says(log: list[ev.Event], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(log)))
    view = fold(log[:cut])
    page = Page().merge(follow(History(), log).changes(0, cut))
    assert len(page.configs) == page.study["trials"] == len(view.trials)
    assert page.study["points"] == view.points
    assert math.isclose(page.study["device_s"], view.device_s_used, rel_tol=1e-5, abs_tol=1e-9)
    for status in Status:
        assert page.study["statuses"][STATUSES.index(status)] == sum(view.status(t) is status for t in view.trials)
    best = page.study["best"]
    assert (best and tuple(best[:2])) == (view.best and view.best[:2])
    for trial in view.trials:
        told = dict(sorted(page.curves.get(trial.id, {}).items()))
        kept = dict(zip(trial.steps, trial.values, strict=True))
        assert told.keys() == kept.keys()
        assert all(_same(told[step], value) for step, value in kept.items())
    assert len(page.lives) == sum(trial.attempts for trial in view.trials)
    assert sum(life[-2] is None for life in page.lives.values()) == len(view.attempts)


def _same(sent: float | None, value: float) -> bool:
    return sent is None if not math.isfinite(value) else sent is not None and math.isclose(sent, value, rel_tol=1e-5)


@given(logs(), st.integers(-5, 10_000))
@settings(deadline=None)
def test_whoever_asks_for_what_cannot_be_gets_everything(log: list[ev.Event], beyond: int) -> None:
    history = follow(History(), log)
    since = len(log) + beyond if beyond > 0 else beyond
    assert history.changes(since).since == 0
    assert Page().merge(history.changes(since)).all == Page().merge(history.changes(0)).all
