# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Writes initial inputs of fuzzers; buildlib/check-corpora sets UROCE_CORPUS to another place."""
import os
import pathlib

CORPUS = pathlib.Path(os.environ.get("UROCE_CORPUS", pathlib.Path(__file__).parent / "corpus"))


def write(name, inputs):
    """Write the inputs, {file: bytes}, into corpus/name."""
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in inputs.items():
        (folder / file).write_bytes(data)
    print(f"{name}: {len(inputs)} files, {sum(map(len, inputs.values()))} bytes")
