# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Places to run programs at, for every test of the folders below."""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
sys.dont_write_bytecode = True
import harness  # noqa: E402


def pytest_configure(config):
    # A skipped test says why, always.
    config.option.reportchars += "s"


@pytest.fixture(scope="session")
def scratch():
    made = harness.Scratch()
    yield made
    made.remove()


@pytest.fixture(scope="module")
def loopback_of_module(scratch):
    with harness.one_place(scratch) as place:
        yield place


@pytest.fixture(scope="module")
def veth_of_module(scratch):
    with harness.two_places(scratch) as place:
        yield place


@pytest.fixture
def loopback(loopback_of_module):
    """uroce_lo, with no other process on it."""
    yield loopback_of_module
    loopback_of_module.close()


@pytest.fixture
def veth(veth_of_module):
    """One of two joined namespaces, the other one is its peer."""
    yield veth_of_module
    veth_of_module.close()
    veth_of_module.peer.close()
