# SPDX-License-Identifier: Apache-2.0
# A sentence to the data of the quickstart: embeddings, weights of two heads, float64 reference values.
#
#   python3 make_data.py    (needs NumPy; writes data/)
#
# A token's embedding is a random vector of its word (8 numbers) beside its position as points on four
# circles (8 numbers). The first head compares words. The second compares positions, its keys turned
# by one step, so that a token finds the one before it.
from pathlib import Path

import numpy as np

SENTENCE = "you say what you mean and it runs fast"
HALF, HEADS = 8, 2
MODEL = 2 * HALF

random = np.random.default_rng(11)
tokens = SENTENCE.split()
count = len(tokens)


def positions(shift):
    """Points on four circles, `shift` steps ahead: (count, HALF)."""
    angles = 2 * np.pi / count * np.outer(np.arange(count) + shift, np.arange(1, HALF // 2 + 1))
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def noise(*shape):
    return random.standard_normal(shape)


words = sorted(set(tokens))
vectors = noise(len(words), HALF)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
x = np.concatenate([vectors[[words.index(t) for t in tokens]], positions(0)], axis=1)

turn = np.linalg.lstsq(positions(0), positions(1), rcond=None)[0]
zero, one = np.zeros((HALF, HALF)), np.eye(HALF)
q = np.stack([2.6 * np.concatenate([one, zero]), 1.5 * np.concatenate([zero, one])])
k = np.stack([2.6 * np.concatenate([one, zero]), 1.5 * np.concatenate([zero, turn])])
v = noise(HEADS, MODEL, HALF) / np.sqrt(MODEL)
out = noise(HEADS, HALF, MODEL) / np.sqrt(MODEL)
q += 0.1 * noise(HEADS, MODEL, HALF)
k += 0.1 * noise(HEADS, MODEL, HALF)
x, q, k, v, out = (a.astype(np.float32) for a in (x, q, k, v, out))


def attend(causal):
    """The definition in float64, on the numbers as they are stored: weights and output."""
    x64, q64, k64, v64, out64 = (a.astype(np.float64) for a in (x, q, k, v, out))
    weights = np.zeros((HEADS, count, count))
    output = np.zeros((count, MODEL))
    for h in range(HEADS):
        scores = (x64 @ q64[h]) @ (x64 @ k64[h]).T / np.sqrt(HALF)
        if causal:
            scores[np.triu_indices(count, 1)] = -np.inf
        exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights[h] = exponents / exponents.sum(axis=1, keepdims=True)
        output += weights[h] @ (x64 @ v64[h]) @ out64[h]
    return weights, output


folder = Path(__file__).parent / "data"
folder.mkdir(exist_ok=True)
(folder / "sentence.txt").write_text(SENTENCE + "\n")
for name, array in {"x": x, "q": q, "k": k, "v": v, "out": out}.items():
    np.save(folder / f"{name}.npy", array)
for name, causal in {"plain": False, "causal": True}.items():
    weights, output = attend(causal)
    np.save(folder / f"{name}_weights.npy", weights)
    np.save(folder / f"{name}_output.npy", output)
