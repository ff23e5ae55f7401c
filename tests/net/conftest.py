# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""One bottleneck for the tests of a file."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import bottleneck  # noqa: E402
import harness  # noqa: E402


def pytest_configure(config):
    # Always report why a test was skipped.
    config.option.reportchars += "s"


@pytest.fixture(scope="module")
def lab_of_module():
    scratch = harness.Scratch()
    try:
        with bottleneck.bottleneck(scratch) as lab:
            yield lab
    finally:
        scratch.remove()


@pytest.fixture
def lab(lab_of_module):
    """A bottleneck with a deep queue, without marks and losses."""
    lab_of_module.set()
    yield lab_of_module
    lab_of_module.close()
