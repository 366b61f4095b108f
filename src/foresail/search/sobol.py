"""Sobol points: the unit cube filled evenly, one dimension a knob.

Point k is computed from k alone, without the points before it. It is scrambled by Owen's nested uniform
scrambling in the hashed form, seeded by the study and the dimension, so that the points are uniform and
two seeds give different points, while every aligned block of 2^m points still has exactly one point in
each of the 2^m slices of every dimension.

Theory: Sobol (1967); direction numbers: S. Joe and F. Y. Kuo, Constructing Sobol sequences with better
two-dimensional projections, SIAM J. Sci. Comput. 30 (2008), file new-joe-kuo-6.21201, dimensions 2 to 64.
Scrambling: A. B. Owen, Randomly permuted (t,m,s)-nets (1995); B. Burley, Practical hash-based Owen
scrambling, JCGT 9 (2020), with the permutation of S. Laine and T. Karras (2011).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from foresail.search.proposal import Ask, systematic
from foresail.space import Config

TRIES = 64
"""Points looked at before the systematic search for what is left: with 1 in 10 configurations free, the
chance to miss all 64 times is 0.1 %."""

_BITS = 32
_MASK = (1 << _BITS) - 1

# One line a dimension: degree of its primitive polynomial, its inner coefficients, the first m.
_JOE_KUO = """
1 0 1
2 1 1 3
3 1 1 3 1
3 2 1 1 1
4 1 1 1 3 3
4 4 1 3 5 13
5 2 1 1 5 5 17
5 4 1 1 5 5 5
5 7 1 1 7 11 19
5 11 1 1 5 1 1
5 13 1 1 1 3 11
5 14 1 3 5 5 31
6 1 1 3 3 9 7 49
6 13 1 1 1 15 21 21
6 16 1 3 1 13 27 49
6 19 1 1 1 15 7 5
6 22 1 3 1 15 13 25
6 25 1 1 5 5 19 61
7 1 1 3 7 11 23 15 103
7 4 1 3 7 13 13 15 69
7 7 1 1 3 13 7 35 63
7 8 1 3 5 9 1 25 53
7 14 1 3 1 13 9 35 107
7 19 1 3 1 5 27 61 31
7 21 1 1 5 11 19 41 61
7 28 1 3 5 3 3 13 69
7 31 1 1 7 13 1 19 1
7 32 1 3 7 5 13 19 59
7 37 1 1 3 9 25 29 41
7 41 1 3 5 13 23 1 55
7 42 1 3 7 3 13 59 17
7 50 1 3 1 3 5 53 69
7 55 1 1 5 5 23 33 13
7 56 1 1 7 7 1 61 123
7 59 1 1 7 9 13 61 49
7 62 1 3 3 5 3 55 33
8 14 1 3 1 15 31 13 49 245
8 21 1 3 5 15 31 59 63 97
8 22 1 3 1 11 11 11 77 249
8 38 1 3 1 11 27 43 71 9
8 47 1 1 7 15 21 11 81 45
8 49 1 3 7 3 25 31 65 79
8 50 1 3 1 1 19 11 3 205
8 52 1 1 5 9 19 21 29 157
8 56 1 3 7 11 1 33 89 185
8 67 1 3 3 3 15 9 79 71
8 70 1 3 7 11 15 39 119 27
8 84 1 1 3 1 11 31 97 225
8 97 1 1 1 3 23 43 57 177
8 103 1 3 7 7 17 17 37 71
8 115 1 3 1 5 27 63 123 213
8 122 1 1 3 5 11 43 53 133
9 8 1 3 5 5 29 17 47 173 479
9 13 1 3 3 11 3 1 109 9 69
9 16 1 1 1 5 17 39 23 5 343
9 22 1 3 1 5 25 15 31 103 499
9 25 1 1 1 11 11 17 63 105 183
9 44 1 1 5 11 9 29 97 231 363
9 47 1 1 5 15 19 45 41 7 383
9 52 1 3 7 7 31 19 83 137 221
9 55 1 1 1 3 23 15 111 223 83
9 59 1 1 5 13 31 15 55 25 161
9 62 1 1 3 13 25 47 39 87 257
"""
DIMENSIONS = 64
"""Knobs beyond this many take plain random quantiles."""


def candidates(ask: Ask) -> Iterator[Config]:
    """Point k of the study's sequence; after a refusal, point k of the next, differently scrambled one."""
    dimensions = len(ask.space.knobs)
    for attempt in range(TRIES):
        seeds = ask.stream_of_study("sobol", attempt)
        even = [sobol(ask.k, d, seeds.getrandbits(_BITS)) for d in range(min(dimensions, DIMENSIONS))]
        extra = ask.stream("sobol", attempt)
        yield ask.space.point(even + [extra.random() for _ in range(dimensions - len(even))])
    yield from systematic(ask)


def sobol(k: int, dimension: int, seed: int) -> float:
    """Coordinate `dimension` (from 0) of scrambled point `k` (from 0, below 2**32), in (0, 1)."""
    bits = 0
    for i, direction in enumerate(_directions(dimension)):
        if k >> i & 1:
            bits ^= direction
    scrambled = _reversed(_permuted(_reversed(bits), seed))
    return (scrambled + 0.5) / (1 << _BITS)


@lru_cache(maxsize=DIMENSIONS)
def _directions(dimension: int) -> tuple[int, ...]:
    """The direction numbers of a dimension, as 32-bit fractions, the first in the highest bit."""
    if dimension == 0:
        return tuple(1 << (_BITS - 1 - i) for i in range(_BITS))
    degree, inner, *first = map(int, _JOE_KUO.strip().splitlines()[dimension - 1].split())
    v = [m << (_BITS - 1 - i) for i, m in enumerate(first)]
    for i in range(degree, _BITS):
        new = v[i - degree] ^ (v[i - degree] >> degree)
        for j in range(1, degree):
            if inner >> (degree - 1 - j) & 1:
                new ^= v[i - j]
        v.append(new)
    return tuple(v)


def _permuted(x: int, seed: int) -> int:
    """Laine-Karras: each bit is flipped depending on the seed and the bits below it only."""
    x = x + seed & _MASK
    for even in (0x6C50B47C, 0xB82F1E52, 0xC7AFE638, 0x8D22F6E6):
        x ^= x * even & _MASK
    return x


def _reversed(x: int) -> int:
    return int(f"{x:032b}"[::-1], 2)
