"""What one step of a PyTorch job shows of it."""

from __future__ import annotations

import pytest

from foresail.perf.observed import Waited, features, with_waiting
from foresail.perf.words import SystemConfiguration

torch = pytest.importorskip("torch")
SYSTEM = SystemConfiguration(micro_batch=8, accumulation=2)


class _Made(torch.utils.data.Dataset):  # type: ignore[misc,name-defined]
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> object:
        return torch.full((16,), float(index)) * 2 + 1


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Waited:
    loader = torch.utils.data.dataloader._BaseDataLoaderIter
    monkeypatch.setattr(loader, "__next__", loader.__next__)  # put back afterwards
    return Waited()


def _step(model: object) -> object:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # type: ignore[attr-defined]
    batches = iter(torch.utils.data.DataLoader(_Made(), batch_size=SYSTEM.micro_batch))

    def step() -> None:
        optimizer.zero_grad()
        for _ in range(SYSTEM.accumulation):
            model(next(batches)).sum().backward()  # type: ignore[operator]
        optimizer.step()

    return step


def test_products_and_parameters_are_counted(waited: Waited) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Linear(32, 4))
    seen = features(_step(model), SYSTEM, waited)  # type: ignore[arg-type]
    assert seen is not None
    assert seen.is_known
    forward = 2 * 16 * 32 + 2 * 32 * 4
    backward = forward + 2 * 32 * 4  # the samples themselves need no gradient
    assert seen.gemm_flop == pytest.approx((forward + backward) / 3)
    assert seen.params is not None
    assert seen.params >= 16 * 32 + 32 + 32 * 4 + 4
    assert 2 <= (seen.kernels or 0) <= 20, "what the loader computes for 16 samples is not among them"


def test_waiting_is_what_loaders_take(waited: Waited) -> None:
    step = _step(torch.nn.Linear(16, 4))
    job = features(step, SYSTEM, waited)  # type: ignore[arg-type]
    assert job is not None
    assert waited.seconds > 0
    named = with_waiting(job, "mine", SYSTEM, 0.32)
    assert (named.name, named.input_s) == ("mine", 0.02)


def test_a_step_without_torch_shows_nothing(waited: Waited) -> None:
    assert features(lambda: sum(range(10)), SYSTEM, waited) is None
