# SPDX-License-Identifier: Apache-2.0
"""Writes arrays.json: arrays and the text that NumPy prints for them.

Run with the NumPy that the texts are to follow (2.4.6 for the stored file). Elements are stored as the
shortest text that reads back in their dtype; long arrays as start + step * i, computed in float64.
"""
import json
import pathlib

import numpy as np

NAMES = {"b1": "bool", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "f4": "f32", "f8": "f64"}
rng = np.random.default_rng(7)
inf, nan = np.inf, np.nan

values = [
    # One number.
    ("f8", (), [0.1]), ("f8", (), [1 / 3]), ("f8", (), [1.0]), ("f8", (), [-0.0]), ("f8", (), [nan]),
    ("f8", (), [-inf]), ("f8", (), [1e-4]), ("f8", (), [9.9e-5]), ("f8", (), [9.9e15]),
    ("f8", (), [1e16]), ("f8", (), [123456789012345680.0]), ("f8", (), [5e-324]),
    ("f8", (), [1.7976931348623157e308]), ("f8", (), [99999992.0]),
    ("f4", (), [0.1]), ("f4", (), [1 / 3]), ("f4", (), [999999.9]), ("f4", (), [1e6]),
    ("f4", (), [16777216.0]), ("f4", (), [1e-4]), ("f4", (), [1.0001e-4]), ("f4", (), [3.4e38]),
    ("f4", (), [1e-45]), ("i8", (), [-7]), ("i1", (), [-128]), ("b1", (), [1]), ("b1", (), [0]),
    # Nothing.
    ("f4", (0,), []), ("f8", (2, 0), []), ("i8", (0, 3), []),
    # Rows of one width.
    ("f8", (1,), [0.1]), ("f4", (1,), [0.1]), ("f8", (3,), [1, 2, 3]), ("f8", (3,), [1, 2.5, -3.25]),
    ("f8", (3,), [1 / 3, 2 / 3, 1]), ("f4", (3,), [1 / 3, 2 / 3, 1]), ("f8", (2,), [-0.0, 0.0]),
    ("f8", (4,), [nan, inf, -inf, 1]), ("f8", (2,), [nan, inf]), ("f8", (2,), [nan, -inf]),
    ("f8", (1,), [nan]), ("f8", (3,), [nan, 1e10, -1]), ("f8", (2,), [inf, 1.5]),
    ("f4", (3,), [0.1, 0.2, 0.3]), ("f8", (2,), [0.12345678901, 0.5]),
    ("f8", (2,), [0.123499999999, 0.5]), ("f8", (2,), [0.999999999999, 0.5]),
    ("f8", (2,), [9.999999999999, 0.5]), ("f8", (2,), [0.000244140625, 0.2001953125]),
    ("f8", (3,), [0.0009765625, 0.00048828125, 0.001953125]),
    # The exponent rules and their edges.
    ("f8", (2,), [1e8, 1]), ("f8", (2,), [99999999, 1e6]), ("f8", (2,), [1e-4, 1e-2]),
    ("f8", (2,), [9.9e-5, 1e-2]), ("f8", (2,), [1000, 1]), ("f8", (2,), [1000.5, 1]),
    ("f8", (2,), [0, 1e-10]), ("f8", (3,), [1e100, 1e-100, -1]), ("f8", (2,), [1e300, 1e-300]),
    ("f8", (2,), [5e-324, 1.7976931348623157e308]), ("f8", (2,), [1.123456789e10, 1]),
    ("f8", (2,), [9.9999999999e10, 1]), ("f8", (1,), [1e10]), ("f8", (2,), [1e10, nan]),
    ("f8", (3,), [-1e10, nan, -inf]), ("f8", (2,), [123456.789, 0.001]),
    ("f4", (2,), [1e6, 1e5]), ("f4", (2,), [999999, 1e5]), ("f4", (1,), [16777216]),
    ("f4", (1,), [1e-4]), ("f4", (2,), [1e-4, 0.1]), ("f4", (2,), [9.9e-5, 0.09]),
    ("f4", (2,), [1000, 1]), ("f4", (2,), [3.4e38, 1e-45]), ("f4", (2,), [123456.78, 200]),
    # Integers and bools.
    ("i8", (4,), [1, -22, 333, 0]), ("i8", (2,), [-(2**63), 2**63 - 1]), ("i1", (3,), [-128, 0, 127]),
    ("i2", (2, 2), [1, 2, 300, -4]), ("i4", (2, 3), [1, 2, 3, 4, 5, 6]), ("b1", (3,), [1, 0, 1]),
    ("b1", (2,), [1, 1]), ("b1", (2, 2), [1, 0, 0, 1]),
    # More axes and wrapped rows.
    ("f8", (2, 2), [1, 2, 3, 4]), ("f4", (2, 2, 2), np.arange(8) / 4), ("i8", (1, 3, 1), [1, 2, 3]),
    ("i8", (1, 1, 1, 1), [5]), ("i8", (2, 1, 2, 2), range(8)), ("i8", (40,), range(40)),
    ("f8", (30,), rng.standard_normal(30)), ("f4", (30,), rng.standard_normal(30)),
    ("f8", (2, 15), rng.random(30) * 1e3), ("f4", (3, 2, 13), rng.standard_normal(78) * 1e-3),
    ("b1", (25,), np.arange(25) % 3 == 0), ("f8", (12,), rng.standard_normal(12) * 1e200),
    ("f8", (24,), [2.5, 10] * 12), ("i8", (500,), range(500)), ("i8", (2, 500), range(1000)),
    ("f4", (100,), rng.random(100)), ("f8", (7, 7), rng.random(49)),
]
ranges = [
    ("i8", (1001,), 0, 1), ("f4", (1001,), 0, 0.5), ("f8", (1001,), -500, 0.25),
    ("i8", (40, 40), 0, 1), ("f4", (2000, 2), 0, 0.125), ("i8", (7, 200), 0, 1),
    ("i8", (6, 200), 0, 1), ("i8", (11, 12, 13), 0, 1), ("f8", (3, 1000), 0, 1e-3),
    ("i4", (1001, 1), 0, 1), ("i8", (2, 3, 4, 100), 0, 1), ("f8", (1500,), 1e7, 1e5),
    ("f4", (1, 1, 1200), -1, 0.001953125),
]


def entry(array):
    return {"dtype": NAMES[array.dtype.str[1:]], "shape": array.shape}


cases = []
for dtype, shape, elements in values:
    array = np.array(list(elements), dtype=dtype).reshape(shape)
    texts = [str(int(x)) if dtype[0] != "f" else str(x) for x in array.ravel()]
    cases.append(entry(array) | {"values": texts, "text": str(array)})
for dtype, shape, start, step in ranges:
    count = int(np.prod(shape))
    array = (start + step * np.arange(count, dtype="f8")).astype(dtype).reshape(shape)
    cases.append(entry(array) | {"start": start, "step": step, "text": str(array)})

lines = ",\n".join(json.dumps(case) for case in cases)
pathlib.Path(__file__).with_name("arrays.json").write_text(f"[\n{lines}\n]\n")
