"""A model over the ranks of its attempt, by torch's own means: DDP, fully_shard, tensor-parallel plans, pipelines.

The mathematics stay those of one process: a global batch is cut into the replicas' shares and these into micro-batches,
gradients are means over the global batch, and a state is told in the names of the whole model, so that what one layout
saves any other loads. Floating-point sums are made in another order; nothing else differs.

This module imports torch; it is imported by trainings that do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.checkpoint import state_dict as whole

from foresail.core.layout import Layout
from foresail.errors import TrainingError
from foresail.worker.ranks import Ranks

Loss = Callable[[Any, Any], Any]
Plan = dict[str, Any]
_ELEMENTWISE = (nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.ELU, nn.Dropout, nn.Identity)
_ENCODERS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)


class Wide:
    """Models that were made parallel in this process, and what is known of them."""

    def __init__(self, ranks: Ranks, *, seed: int) -> None:
        self._ranks, self._seed = ranks, seed
        self._models: list[nn.Module] = []
        self._pipelines: dict[tuple[int, int], Any] = {}

    # --- models --------------------------------------------------------------------------------------------------

    def parallelize(self, model: nn.Module, plan: Plan | None) -> nn.Module:
        layout = self._ranks.layout
        device = next((p.device.type for p in model.parameters()), "cpu")
        if layout.pp > 1:
            if layout.sharded:
                raise TrainingError("parallelize(): a pipeline with sharded replicas is not supported")
            model = _stage(model, self._ranks.stage, layout.pp)
        if layout.tp > 1:
            _cut_layers(model, self._ranks.mesh("tp", device), plan or automatic_plan(model, layout.tp), layout.pp)
        if layout.dp > 1:
            _warn_of_batch_norm(model)
            model = self._replicate(model, device)
        self._models.append(model)
        if self._ranks.replica:  # dropout must differ between replicas and be the same within one
            torch.manual_seed(self._seed + 1_000_003 * self._ranks.replica)
        return model

    def _replicate(self, model: nn.Module, device: str) -> nn.Module:
        layout = self._ranks.layout
        mesh = self._ranks.mesh("dp", device)
        if layout.sharded:
            shard = torch.distributed.fsdp.fully_shard
            for block in _blocks(model):
                shard(block, mesh=mesh)
            shard(model, mesh=mesh)
            return model
        if layout.pp > 1 or layout.tp > 1:
            return model  # `backward` averages the gradients
        ddp: nn.Module = nn.parallel.DistributedDataParallel(model, process_group=mesh.get_group())
        return ddp

    # --- one step ------------------------------------------------------------------------------------------------

    def backward(self, model: nn.Module, loss: Loss, inputs: Any, targets: Any) -> float:
        """Gradients of the mean loss over the global batch, from this rank's share of it; the mean loss."""
        size = len(inputs)
        if self._ranks.layout.pp > 1:
            value = self._through_pipeline(model, loss, inputs, targets)
        else:
            value = 0.0
            micro = self._ranks.layout.micro(size)
            for begin in range(0, size, micro):
                with _synchronized(model, begin + micro >= size):
                    part = slice(begin, begin + micro)
                    share = loss(model(inputs[part]), targets[part]) * (len(inputs[part]) / size)
                    share.backward()
                value += share.item()
        self._average_gradients(model)
        return float(self._ranks.mean(value))

    def _average_gradients(self, model: nn.Module) -> None:
        layout = self._ranks.layout
        if layout.dp == 1 or layout.sharded or isinstance(model, nn.parallel.DistributedDataParallel):
            return
        group = self._ranks.mesh("dp", next(model.parameters()).device.type).get_group()
        for parameter in model.parameters():
            if parameter.grad is not None:
                gradient = _local(parameter.grad)
                dist.all_reduce(gradient, group=group)
                gradient /= layout.dp

    def _through_pipeline(self, model: nn.Module, loss: Loss, inputs: Any, targets: Any) -> float:
        layout, ranks = self._ranks.layout, self._ranks
        key = (id(model), len(inputs))
        if key not in self._pipelines:
            self._pipelines[key] = self._pipeline(model, loss, len(inputs))
        schedule = self._pipelines[key]
        losses: list[Any] = []
        if ranks.stage == 0:
            schedule.step(inputs)
        elif ranks.stage == layout.pp - 1:
            schedule.step(target=targets, losses=losses)
        else:
            schedule.step()
        return float(sum(part.item() for part in losses) / len(losses)) if losses else 0.0

    def _pipeline(self, model: nn.Module, loss: Loss, size: int) -> Any:
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

        layout = self._ranks.layout
        device = next(model.parameters()).device
        group = self._ranks.mesh("pp", device.type).get_group()
        parts = _micro_batches(size, layout)
        return ScheduleGPipe(PipelineStage(model, self._ranks.stage, layout.pp, device, group=group), parts, loss)

    # --- state ---------------------------------------------------------------------------------------------------

    def ways(self, thing: Any) -> tuple[Callable[[], Any], Callable[[Any], object]] | None:
        """How to take the state of a model made here, or of an optimizer of one; None for anything else."""
        if any(thing is model for model in self._models):
            return lambda: self._take_model(thing), lambda state: _give_model(thing, state)
        if isinstance(thing, torch.optim.Optimizer):
            model = next((model for model in self._models if _is_of(thing, model)), None)
            if model is not None:
                return lambda: self._take_optimizer(model, thing), lambda state: _give_optimizer(model, thing, state)
        return None

    def _take_model(self, model: nn.Module) -> Any:
        return self._whole(whole.get_model_state_dict(model, options=self._options()), _joined)

    def _take_optimizer(self, model: nn.Module, optimizer: Any) -> Any:
        state = whole.get_optimizer_state_dict(model, optimizer, options=self._options())
        return self._whole(state, _joined_optimizer)

    def _options(self) -> Any:
        return whole.StateDictOptions(full_state_dict=True, cpu_offload=self._ranks.layout.pp == 1)

    def _whole(self, state: Any, join: Callable[[list[Any]], Any]) -> Any:
        """The state of the whole model on rank 0: stages of a pipeline hand over theirs."""
        layout = self._ranks.layout
        if layout.pp == 1:
            return state
        first = self._ranks.rank % (layout.dp * layout.tp) == 0
        everyone = self._ranks.gather(state if first else None)
        return join([part for part in everyone if part is not None]) if everyone else state


def _is_of(optimizer: Any, model: nn.Module) -> bool:
    ours = {id(p) for p in model.parameters()}
    return all(id(p) in ours for group in optimizer.param_groups for p in group["params"])


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def _joined_optimizer(parts: list[dict[str, Any]]) -> dict[str, Any]:
    groups = [dict(group) for group in parts[0]["param_groups"]]
    for number, group in enumerate(groups):
        group["params"] = [name for part in parts for name in part["param_groups"][number]["params"]]
    return {"state": _joined([part["state"] for part in parts]), "param_groups": groups}


def _give_model(model: nn.Module, state: dict[str, Any]) -> None:
    own = _names(model, buffers=True)
    missing = own - state.keys()
    if missing:
        raise TrainingError(f"track(): the checkpoint lacks {sorted(missing)[0]!r} of the model")
    options = whole.StateDictOptions(full_state_dict=True)
    whole.set_model_state_dict(model, {n: v for n, v in state.items() if n in own}, options=options)


def _give_optimizer(model: nn.Module, optimizer: Any, state: dict[str, Any]) -> None:
    own = _names(model, buffers=False)
    groups = [{**g, "params": [n for n in g["params"] if n in own]} for g in state["param_groups"]]
    mine = {"state": {n: v for n, v in state["state"].items() if n in own}, "param_groups": groups}
    whole.set_optimizer_state_dict(model, optimizer, mine, options=whole.StateDictOptions(full_state_dict=True))


def _names(model: nn.Module, *, buffers: bool) -> set[str]:
    """Names in the whole model; DDP's own prefix is none of them."""
    inner = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
    return set(inner.state_dict()) if buffers else {name for name, _ in inner.named_parameters()}


# --- how a model is cut --------------------------------------------------------------------------------------------


def automatic_plan(model: nn.Module, tp: int) -> Plan:
    """Pairs of linear layers with nothing but element-wise layers between them: the first by columns, the second by
    rows (Shoeybi et al., 2019), in `nn.Sequential` and in torch's transformer layers.

    Raises:
        TrainingError: there is no such pair whose width `tp` divides.
    """
    pairs: list[tuple[str, str, nn.Linear]] = []
    for name, module in model.named_modules():
        prefix = f"{name}." if name else ""
        if isinstance(module, _ENCODERS):
            pairs.append((f"{prefix}linear1", f"{prefix}linear2", module.linear1))
        elif isinstance(module, nn.Sequential):
            pairs += [(prefix + a, prefix + b, layer) for a, b, layer in _linear_pairs(module)]
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    fit = [(first, second) for first, second, layer in pairs if layer.out_features % tp == 0]
    if not fit:
        raise TrainingError(
            f"parallelize(): no pair of linear layers is found that {tp} ranks can share",
            do="give a plan: run.parallelize(model, plan={'name.of.layer': ColwiseParallel(), ...})",
        )
    return {name: style for a, b in fit for name, style in ((a, ColwiseParallel()), (b, RowwiseParallel()))}


def _linear_pairs(module: nn.Sequential) -> Iterator[tuple[str, str, nn.Linear]]:
    first: tuple[str, nn.Linear] | None = None
    for name, layer in module.named_children():
        if isinstance(layer, nn.Linear):
            if first is not None:
                yield first[0], name, first[1]
            first = (name, layer) if first is None else None
        elif not isinstance(layer, _ELEMENTWISE):
            first = None


def _cut_layers(model: nn.Module, mesh: Any, plan: Plan, pp: int) -> None:
    from torch.distributed.tensor.parallel import parallelize_module

    torch.backends.mha.set_fastpath_enabled(False)  # it takes weights by the back door, and knows no cut ones
    names = {name for name, _ in model.named_modules()}
    here = {name: style for name, style in plan.items() if pp == 1 or "*" in name or name in names}
    parallelize_module(model, mesh, here)


def _blocks(model: nn.Module) -> list[nn.Module]:
    """What is gathered and freed as one under full sharding: members of sequences, else nothing but the whole."""
    for module in model.modules():
        if isinstance(module, nn.Sequential | nn.ModuleList):
            return [child for child in module.children() if any(True for _ in child.parameters())]
    return []


def _stage(model: nn.Module, stage: int, stages: int) -> nn.Module:
    """The layers of one stage under their own names, cut where parameters are shared out most evenly."""
    if not isinstance(model, nn.Sequential) or len(model) < stages:
        raise TrainingError(
            f"parallelize(): a {type(model).__name__} cannot be cut into {stages} stages",
            allowed="an nn.Sequential of as many layers or more",
        )
    layers = list(model.named_children())
    weights = [1 + sum(p.numel() for p in layer.parameters()) for _, layer in layers]
    total, passed, cut = sum(weights), 0, [0]
    for number, weight in enumerate(weights):
        left = stages - len(cut)
        full = passed + weight / 2 >= total * len(cut) / stages
        if left and number > cut[-1] and (full or len(layers) - number == left):
            cut.append(number)
        passed += weight
    part = nn.Sequential()
    for name, layer in layers[cut[stage] : [*cut, len(layers)][stage + 1]]:
        part.add_module(name, layer)
    return part.train(model.training)


def _micro_batches(size: int, layout: Layout) -> int:
    """Micro-batches of a share: of the size that is asked for, else at most two for each stage."""
    if layout.micro_batch is not None:
        micro = layout.micro(size)
        if size % micro:
            raise TrainingError(f"a share of {size} samples is not whole micro-batches of {micro}")
        return size // micro
    parts = max(n for n in range(1, 2 * layout.pp + 1) if size % n == 0)
    return size // msgspec.structs.replace(layout, micro_batch=size // parts).micro(size)


def _warn_of_batch_norm(model: nn.Module) -> None:
    if any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules()):
        warnings.warn(
            "batch norm sees its rank's share of the batch, so the width changes what is learned; "
            "group or layer norm does not",
            RuntimeWarning,
        )


def _synchronized(model: nn.Module, last: bool) -> AbstractContextManager[Any]:
    """Gradients travel once a step, with the last micro-batch."""
    if hasattr(model, "set_requires_gradient_sync"):
        model.set_requires_gradient_sync(last)
    if isinstance(model, nn.parallel.DistributedDataParallel) and not last:
        held: AbstractContextManager[Any] = model.no_sync()
        return held
    return nullcontext()


def _local(tensor: Any) -> Any:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor
