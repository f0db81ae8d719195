# SPDX-License-Identifier: Apache-2.0
# Writes the .npz files of this folder with NumPy itself; the tests compare values with them.
#
#   python3 make.py    (written with NumPy 2.4.6 and Python 3.11)
import pathlib
import zipfile

import numpy as np

HERE = pathlib.Path(__file__).parent
arrays = {
    "x": np.arange(24, dtype="f4").reshape(2, 3, 4) / 4 - 1,
    "turned": np.asfortranarray(np.arange(6, dtype=">f8").reshape(2, 3)),
    "count": np.array(7, "i8"),
    "mask": np.array([True, False]),
    "none": np.zeros((0, 3), "f4"),
    "größe": np.array([1, 2, 3], "i2"),
    "folder/y": np.zeros(1000, "f4"),
}
np.savez(HERE / "stored.npz", **arrays)
np.savez_compressed(HERE / "deflated.npz", **arrays)
# Numbers of archives beyond 4 GiB and 65535 members stand in other places; here without their size.
zipfile.ZIP64_LIMIT = 100
zipfile.ZIP_FILECOUNT_LIMIT = 2
np.savez(HERE / "zip64.npz", **arrays)
with zipfile.ZipFile(HERE / "text.npz", "w") as archive:
    archive.writestr("note.txt", "no array")
with zipfile.ZipFile(HERE / "bzip2.npz", "w", zipfile.ZIP_BZIP2) as archive:
    archive.writestr("x.npy", b"0" * 100)
