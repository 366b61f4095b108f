"""Features of a transformer from its dimensions alone.

Counts follow Narayanan et al. (SC 2021, section 5.1) and Korthikanti et al. (MLSys 2023, section 4): with
hidden size h, sequence s, vocabulary V and a heads, one layer does 24 s h^2 + 4 s^2 h operations for a sample
and keeps s h (34 + 5 a s / h) bytes for its backward pass.
"""

from __future__ import annotations

import math

import numpy as np

from foresail.errors import CallerError
from foresail.perf.words import Job

_KERNELS_PER_LAYER = 20.0
"""Forward operations of one block without fusion: two norms, four products, bias, dropout and residual of
each half, split, scale, mask, softmax. It is a unit for `launch_us`, which is fitted, more than a count."""
_TRAFFIC_PER_ACTIVATION = 2.0
"""An activation that is kept was written once and is read once in the forward pass."""

# hidden size over 12 layers x hidden^2: GPT-3 family (Brown et al. 2020, table 2.1), LLaMA-65B (Touvron et
# al. 2023)
_SHAPE_BODY = np.log([8.5e7, 3.02e8, 6.8e8, 1.21e9, 2.52e9, 6.44e9, 1.26e10, 6.44e10, 1.74e11])
_SHAPE_HIDDEN = np.log([768, 1024, 1536, 2048, 2560, 4096, 5120, 8192, 12288])


def transformer(
    name: str,
    *,
    layers: int,
    hidden: int,
    heads: int,
    seq_len: int,
    vocab: int = 51_200,
    flash: bool = False,
) -> Job:
    """The features of a decoder or encoder stack.

    `flash` says that attention keeps no s x s matrix (Dao et al., NeurIPS 2022).

    Raises:
        CallerError: a dimension is below one, or the heads do not divide the hidden size.

    >>> round(transformer("gpt3", layers=96, hidden=12288, heads=96, seq_len=2048).params / 1e9)
    175
    """
    for what, value in (("layers", layers), ("hidden", hidden), ("heads", heads), ("seq_len", seq_len)):
        if value < 1:
            raise CallerError(f"transformer {name!r}: {what} is {value}", allowed="whole numbers from 1")
    if hidden % heads:
        raise CallerError(
            f"transformer {name!r}: {heads} heads do not divide a hidden size of {hidden}",
            do="give the number of heads that does",
        )
    sh = float(seq_len) * hidden
    scores = 0.0 if flash else 5.0 * heads * float(seq_len) ** 2
    kept = layers * (34.0 * sh + scores)
    embedding = float(vocab + seq_len) * hidden
    return Job(
        name=name,
        gemm_flop=layers * 24.0 * sh * hidden,
        attention_flop=layers * 4.0 * sh * seq_len,
        head_flop=2.0 * sh * vocab,
        traffic_bytes=_TRAFFIC_PER_ACTIVATION * kept,
        kernels=_KERNELS_PER_LAYER * layers,
        params=layers * (12.0 * float(hidden) ** 2 + 13.0 * hidden) + embedding,
        layers=layers,
        hidden=hidden,
        heads=heads,
        seq_len=seq_len,
        vocab=vocab,
        activation_bytes=kept,
        boundary_bytes=2.0 * sh,
        largest_layer_params=max(12.0 * float(hidden) ** 2, embedding),
    )


def transformer_of_size(name: str, params: float, *, seq_len: int, vocab: int = 50_368) -> Job:
    """A transformer of which only the parameter count is known: width from the GPT-3 family, the depth that
    makes up the count, attention without stored scores.

    Raises:
        CallerError: there are no parameters, or fewer than the embedding alone needs.
    """
    if not (math.isfinite(params) and params > 0):
        raise CallerError(f"transformer {name!r}: {params} parameters", allowed="above 0")
    body = params
    for _ in range(20):  # the embedding's share depends on the width, and the width on what is left
        wide = math.exp(float(np.interp(math.log(max(body, 1e6)), _SHAPE_BODY, _SHAPE_HIDDEN)))
        hidden = max(64, round(wide / 64) * 64)
        body = params - float(vocab + seq_len) * hidden
    if body <= 0:
        raise CallerError(f"transformer {name!r}: {params:.0f} parameters are fewer than its embedding needs")
    layers = max(1, round(body / (12.0 * hidden**2)))
    return transformer(name, layers=layers, hidden=hidden, heads=hidden // 64, seq_len=seq_len, vocab=vocab, flash=True)
