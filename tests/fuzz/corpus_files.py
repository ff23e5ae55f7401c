# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Where the inputs are that fuzzing begins with; buildlib/check-corpora has them made elsewhere."""
import os
import pathlib

CORPUS = pathlib.Path(os.environ.get("UROCE_CORPUS", pathlib.Path(__file__).parent / "corpus"))


def write(name, inputs):
    """Into corpus/name, each of the inputs: {file: bytes}."""
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in inputs.items():
        (folder / file).write_bytes(data)
    print(f"{name}: {len(inputs)} files, {sum(map(len, inputs.values()))} bytes")
