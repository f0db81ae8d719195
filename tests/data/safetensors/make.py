# SPDX-License-Identifier: Apache-2.0
# Writes mixed.safetensors with the format's own Python package; the tests compare values with it.
#
#   python3 make.py    (written with NumPy 2.4.6 and safetensors 0.8.0)
import pathlib

import numpy as np
from safetensors import TensorSpec, serialize_file

HERE = pathlib.Path(__file__).parent
arrays = {
    "mask": ("bool", np.array([[True, False, True]])),
    "small": ("int8", np.array([-128, 127], "i1")),
    "short": ("int16", np.array([-32768, 32767], "i2")),
    "int": ("int32", np.array([[-(2**31)], [2**31 - 1]], "i4")),
    "long": ("int64", np.array([-(2**63), 2**63 - 1], "i8")),
    "half": ("float16", np.array([1, -2, 65504, 2.0**-24], "f2")),
    "brain": ("bfloat16", np.array([0x3F80, 0xC000, 0x7F7F, 0x0001], "u2")),
    "single": ("float32", np.arange(6, dtype="f4").reshape(1, 2, 3) / 4),
    "double": ("float64", np.array(3.25)),
    "none": ("float32", np.zeros((2, 0), "f4")),
}
content = {
    name: TensorSpec(
        dtype=dtype, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
    )
    for name, (dtype, array) in arrays.items()
}
serialize_file(content, str(HERE / "mixed.safetensors"), {"origin": "make.py", "größe": "10"})
