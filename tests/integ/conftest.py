# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Fixtures of all tests below: the network namespaces ("places") in which programs run."""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
sys.dont_write_bytecode = True
import harness  # noqa: E402


def pytest_configure(config):
    # Always print the reasons of skipped tests.
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
    """A place with the device uroce_lo; kills the programs that a test has left running."""
    yield loopback_of_module
    loopback_of_module.close()


@pytest.fixture
def veth(veth_of_module):
    """One of two namespaces that a veth pair connects; the other one is its peer."""
    yield veth_of_module
    veth_of_module.close()
    veth_of_module.peer.close()
