# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Processes of other users do not keep ours from beginning and from connecting."""
import time

import pytest

import harness
import hostile
import talk

ATTACKS = ["messages", "descriptors", "flood", "hold", "squat"]


@pytest.fixture(params=["this kernel", "old kernel"], autouse=True)
def kernel(request, monkeypatch):
    if request.param == "old kernel":
        for name, value in hostile.OLD_KERNEL.items():
            monkeypatch.setenv(name, value)


@pytest.mark.parametrize("attack", ATTACKS)
def test_others_come_in_meanwhile(loopback, attack):
    """Processes can begin, connect and be asked while strangers do what they can."""
    harness.need_root()
    first = talk.open_end(loopback)
    stranger = hostile.Stranger(loopback, attack)
    for _ in range(3):
        start = time.monotonic()
        second = talk.open_end(loopback)
        first_shown = {process["pid"] for process in loopback.stat()}
        assert {first.pid, second.pid} <= first_shown
        second.end()
        assert time.monotonic() - start < 10
    stranger.done()
    first.end()


@pytest.mark.parametrize("attack", ["hold", "descriptors"])
def test_no_descriptor_is_left(loopback, attack):
    """A process that cannot accept connections does not try it all the time."""
    harness.need_root()
    first, second = talk.pair(loopback)
    assert first.do("write") == talk.SUCCESS
    assert second.use_up_descriptors() > 0
    stranger = hostile.Stranger(loopback, attack)
    used = second.process.ticks()
    time.sleep(hostile.SECONDS)
    # It was half a processor to a whole one.
    assert second.process.ticks() - used < 0.3 * hostile.SECONDS
    stranger.done()
    assert first.do("write") == talk.SUCCESS


def test_user_that_stands_for_others(loopback):
    """Without a user of its own it could not be told from strangers: refused, and told why."""
    harness.need_root()
    process = loopback.run("unshare", "-U", "ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0",
                           user=hostile.STRANGER)
    assert process.popen.returncode != 0
    assert "stands for all users" in process.errors, process
    assert "does not answer" not in process.errors
    # With one there is nothing to complain of.
    process = loopback.run("unshare", "-Ur", "ibv_devinfo", "-d", "uroce_lo", user=hostile.STRANGER)
    assert process.popen.returncode == 0, process
