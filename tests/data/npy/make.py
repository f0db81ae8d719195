# SPDX-License-Identifier: Apache-2.0
# Writes the .npy files of this folder with NumPy itself; the tests compare values and bytes with them.
import pathlib
import warnings

import numpy as np

HERE = pathlib.Path(__file__).parent
warnings.simplefilter("ignore")  # NumPy warns about version 2 and 3


def write(name, array, version=None):
    with open(HERE / f"{name}.npy", "wb") as file:
        np.lib.format.write_array(file, np.asanyarray(array), version=version)


ramp = np.arange(24).reshape(2, 3, 4)
ends = {"i1": 127, "i2": 32767, "i4": 2**31 - 1, "i8": 2**63 - 1}
halves = [1, -2, 65504, 2.0**-14, 2.0**-24, -(2.0**-24) * 1023, np.inf, -np.inf, np.nan, 0.1, -0.0]

for order, name in (("<", "little"), (">", "big")):
    for code in ("f4", "f8"):
        write(f"{name}_{code}", (ramp / 4 - 1).astype(order + code))
    for code in ends:
        write(f"{name}_{code}", np.array([0, 1, -1, ends[code], -ends[code] - 1], order + code))
    write(f"{name}_f2", np.array(halves, order + "f2"))
    write(f"{name}_fortran_f8", np.asfortranarray(ramp.astype(order + "f8")))
    write(f"{name}_fortran_f2", np.asfortranarray(ramp[0].astype(order + "f2")))
write("bool", np.array([[True, False, True], [False, False, True]]))
write("scalar_f8", np.array(3.25))
write("empty_0x3_f4", np.zeros((0, 3), "f4"))
write("empty_3x0x2_i8", np.zeros((3, 0, 2), "i8"))
write("large_first_f4", np.arange(1000, dtype="f4"))
# The dictionary of this one ends on a multiple of 64 bytes: NumPy then adds 64 blanks, not none.
write("aligned_f4", np.zeros((1,) * 11 + (100000, 0), "f4"))
write("version_2_f4", ramp.astype("f4"), (2, 0))
write("version_3_f4", ramp.astype("f4"), (3, 0))
write("unsupported_u1", np.array([1, 2], "u1"))
write("unsupported_c8", np.array([1 + 2j], "c8"))
write("unsupported_f16", np.array([1], "f16"))
write("unsupported_object", np.array([None]))
write("unsupported_text", np.array(["abc"]))
write("unsupported_time", np.array(["2020-01-01"], "M8[D]"))
write("unsupported_record", np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]))
