"""Features of a PyTorch model and a batch, without a GPU and without computing anything.

The model's forward pass runs once on the meta device, where tensors have shapes and no data. FLOPs come from
`torch.utils.flop_counter`; operations, bytes moved and bytes kept for the backward pass are counted on the way.
Attention counts as fused. Other frameworks give a `Job` by hand, or a `Job(name=...)` alone, and the model learns from
steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foresail.errors import CallerError, MissingExtraError
from foresail.perf.words import Job

_ATTENTION = ("bmm", "baddbmm", "scaled_dot_product")
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "linear", "convolution", "convolution_overrideable")
"""Operations whose bytes move while they compute: the efficiency of products holds them."""


def characterize(
    model: Any,
    inputs: tuple[Any, ...],
    *,
    name: str,
    loss: Callable[[Any], Any] | None = None,
    batch: int | None = None,
    input_s: float | None = None,
) -> Job:
    """The features of a `torch.nn.Module` on one batch, per sample.

    Args:
        model: left as it is; a copy goes to the meta device.
        inputs: one batch, as the model's positional arguments.
        name: of the job.
        loss: of the model's output, where it adds work worth counting.
        batch: samples in the batch (default: the first dimension of the first tensor).
        input_s: seconds that one loader worker needs for a sample, if known.

    Raises:
        MissingExtraError: PyTorch is not installed.
        CallerError: there is no tensor among the inputs, or the forward pass needs data (a branch on a
        value).
    """
    torch = _torch()
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    if not tensors:
        raise CallerError("characterize: no tensor among the inputs", do="give one batch as a tuple of tensors")
    samples = batch or int(tensors[0].shape[0])
    counts = _traced(torch, model, inputs, loss)
    blocks, hidden = _stack(torch, model)
    params = [p.numel() for p in model.parameters()]
    layers = [sum(p.numel() for p in m.parameters(recurse=False)) for m in model.modules()]
    return Job(
        name=name,
        gemm_flop=counts.flop / samples,
        attention_flop=counts.attention_flop / samples,
        traffic_bytes=counts.traffic_bytes / samples / 2,
        kernels=float(counts.operations),
        params=float(sum(params)),
        layers=blocks,
        hidden=hidden,
        heads=_heads(model),
        seq_len=int(tensors[0].shape[1]) if tensors[0].dim() == 2 and not tensors[0].is_floating_point() else None,
        activation_bytes=counts.kept_bytes / samples / 2,
        boundary_bytes=counts.kept_bytes / samples / 2 / max(blocks or 1, 1) / 17.0,
        largest_layer_params=float(max(layers, default=0)),
        input_s=input_s,
    )


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("PyTorch", "torch") from None
    return torch


class _Counts:
    """What one forward pass does: FLOPs, operations, bytes in elements of four bytes."""

    def __init__(self) -> None:
        self.flop = self.attention_flop = self.traffic_bytes = self.kept_bytes = 0.0
        self.operations = 0


def _traced(torch: Any, model: Any, inputs: tuple[Any, ...], loss: Callable[[Any], Any] | None) -> _Counts:
    """One forward pass on the meta device, counted."""
    import copy
    from unittest.mock import patch

    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    counts = _Counts()
    kept: dict[int, Any] = {}
    shadow = copy.deepcopy(model).to("meta")
    own = {t.untyped_storage()._cdata for t in (*shadow.parameters(), *shadow.buffers())}

    class Counter(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            read = [a for a in args if isinstance(a, torch.Tensor)]
            made = [t for t in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(t, torch.Tensor)]
            shared = {t.untyped_storage()._cdata for t in read}
            is_product = func.overloadpacket.__name__ in _PRODUCTS
            if made and not all(t.untyped_storage()._cdata in shared for t in made):  # a view moves nothing
                counts.operations += 1
                if not is_product:
                    counts.traffic_bytes += sum(t.numel() * t.element_size() for t in (*made, *read))
            return out

    class Fused(torch.autograd.Function):
        """Attention that keeps no score matrix, as accelerators run it (Dao et al., NeurIPS 2022)."""

        @staticmethod
        def forward(ctx: Any, query: Any, key: Any, value: Any) -> Any:
            out = query.new_empty((*query.shape[:-1], value.shape[-1]))
            ctx.save_for_backward(query, key, value, out)
            return out

    def fused(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        scores = query.numel() // query.shape[-1] * key.shape[-2]
        counts.attention_flop += 2.0 * scores * (query.shape[-1] + value.shape[-1])
        return Fused.apply(query, key, value)

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage  # held, so that its identity is not given to another
        return tensor

    counter = Counter()
    attention = patch.object(torch.nn.functional, "scaled_dot_product_attention", fused)
    flops = FlopCounterMode(display=False)
    on_meta = tuple(x.to("meta") if isinstance(x, torch.Tensor) else x for x in inputs)
    try:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t), flops, counter, attention:
            out = shadow(*on_meta)
            if loss is not None:
                loss(out)
    except (RuntimeError, NotImplementedError) as error:
        raise CallerError(
            f"characterize: the forward pass cannot run without data ({error})",
            do="give the job's features by hand, or Job(name=...) alone: the model learns from steps",
        ) from error
    for operation, flop in flops.get_flop_counts().get("Global", {}).items():
        if any(word in str(operation) for word in _ATTENTION):
            counts.attention_flop += flop
        else:
            counts.flop += flop
    counts.kept_bytes = float(sum(storage.nbytes() for storage in kept.values()))
    return counts


def _stack(torch: Any, model: Any) -> tuple[int | None, int | None]:
    """The longest list of equal blocks, and the width of a block: the last dimension of its largest
    weight's."""
    best: list[Any] = []
    for module in model.modules():
        if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)):
            children = list(module.children())
            alike = [c for c in children if type(c) is type(children[0]) and any(True for _ in c.parameters())]
            if len(alike) > len(best) and len(alike) == len(children):
                best = alike
    if len(best) < 2:
        return None, None
    widths = [min(p.shape[0], p.shape[-1]) for p in best[0].parameters() if p.dim() == 2]
    return len(best), int(max(widths)) if widths else None


def _heads(model: Any) -> int | None:
    """Attention heads, where a module says so."""
    for module in model.modules():
        for word in ("num_heads", "n_heads", "n_head", "num_attention_heads"):
            value = getattr(module, word, None)
            if isinstance(value, int) and value > 0:
                return value
    return None
