# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""One guest for all tests; if there can be no guest, they are skipped with the reason."""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "integ", "support")]
sys.dont_write_bytecode = True
import guest  # noqa: E402
import harness  # noqa: E402

SKIPPED = 77


def pytest_configure(config):
    config.option.reportchars += "s"


@pytest.fixture(scope="session")
def scratch():
    made = harness.Scratch()
    yield made
    made.remove()


@pytest.fixture(scope="session")
def image():
    try:
        return guest.make_image()
    except guest.Cannot as reason:
        pytest.exit(f"skipped: {reason}", SKIPPED)


@pytest.fixture(scope="session")
def host_of_session(scratch, image):
    place = harness.new_namespace(scratch)
    if not place:
        pytest.exit("skipped: network namespaces are not permitted here", SKIPPED)
    try:
        booted = guest.Guest(place, image)
    except guest.Cannot as reason:
        harness.release(place)
        pytest.exit(f"skipped: {reason}", SKIPPED)
    try:
        yield place
    finally:
        booted.end()
        harness.release(place)


@pytest.fixture(scope="module")
def host_of_module(request, host_of_session):
    """Sets the MTU for a test file: its variable MTU, or 1500 (path MTU 1024)."""
    host_of_session.peer.set_mtu(getattr(request.module, "MTU", guest.FIRST_MTU))
    return host_of_session


@pytest.fixture
def host(host_of_module):
    """uroce's end; the guest is its peer."""
    yield host_of_module
    host_of_module.close()
    host_of_module.peer.close()


@pytest.fixture(params=("serves", "asks"))
def server(request, host):
    """uroce's role: the Place that the server runs at."""
    return host if request.param == "serves" else host.peer
