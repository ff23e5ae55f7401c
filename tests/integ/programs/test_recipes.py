# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The recipes of Documentation/recipes: runs each code block that follows a line <!-- run -->.

The block after <!-- run: PROGRAM --> needs a program that the build does not need, and is skipped
if the program is missing.
"""
import glob
import os
import re
import shutil
import subprocess

import pytest

import harness

PAGES = os.path.join(harness.ROOT, "Documentation", "recipes", "*.md")
BLOCK = re.compile(r"^<!-- run(?:: (\S+))? -->\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def recipes():
    for page in sorted(glob.glob(PAGES)):
        with open(page, encoding="utf-8") as file:
            text = file.read()
        # A mark that is not followed by a block would be ignored.
        assert len(BLOCK.findall(text)) == len(re.findall("^<!-- run", text, re.MULTILINE)), page
        for number, (program, script) in enumerate(BLOCK.findall(text), 1):
            name = os.path.basename(page)[:-len(".md")]
            yield pytest.param(program, script, id=f"{name}-{number}")


def missing(program):
    if program.startswith("lib"):
        found = subprocess.run(["cc", f"-print-file-name={program}.so"], stdout=subprocess.PIPE,
                               text=True, check=True).stdout.strip()
        return not os.path.isabs(found)
    if program == "ucx_perftest":
        return not harness.ucx_has_verbs()
    return bool(program) and not shutil.which(program)


@pytest.mark.parametrize("program, script", recipes())
def test_recipe(program, script, loopback, scratch, tmp_path):
    if missing(program):
        pytest.skip(f"{program} is not installed")
    path = f"{scratch.bin}:{os.environ['PATH']}"
    process = loopback.run("env", "-C", tmp_path, "-u", "LD_LIBRARY_PATH", f"PATH={path}",
                           "bash", "-euo", "pipefail", "-c", script, seconds=100)
    text = f"{process}"
    if "unshare: " in process.errors and "not permitted" in process.errors:
        pytest.skip("no user namespaces here")
    assert process.popen.returncode == 0, text
