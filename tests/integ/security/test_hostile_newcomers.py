# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Processes of other users cannot keep ours from starting and from connecting."""
import time

import pytest

import attacks
import harness
import verbs_peer

ATTACKS = ["messages", "descriptors", "flood", "hold", "squat"]


@pytest.fixture(params=["this kernel", "old kernel"], name="kernel", autouse=True)
def kernel_of_broker(request, monkeypatch, loopback):
    monkeypatch.setenv("UROCE_TEST_BROKER_IDLE", "100")
    attacks.await_no_broker(loopback)
    if request.param == "old kernel":
        for name, value in attacks.OLD_KERNEL.items():
            monkeypatch.setenv(name, value)
    return request.param


@pytest.mark.parametrize("attack", ATTACKS)
def test_others_come_in_meanwhile(loopback, kernel, attack):
    """During attacks of another user processes can start, connect and answer uroce-stat."""
    harness.need_root()
    first = verbs_peer.start(loopback)
    stranger = attacks.Attacker(loopback, attack)
    for _ in range(3):
        start = time.monotonic()
        second = verbs_peer.start(loopback)
        first_shown = {process["pid"] for process in loopback.stat()}
        assert {first.pid, second.pid} <= first_shown
        second.end()
        assert time.monotonic() - start < 10
    done = stranger.done()
    if (kernel, attack) == ("old kernel", "descriptors"):
        assert done.get("SEQPACKET with descriptors", 0) > 0, done
    first.end()


@pytest.mark.parametrize("attack", ["hold", "descriptors"])
def test_no_descriptor_is_left(loopback, attack):
    """A process that has no descriptor left for connections does not try to accept all the time."""
    harness.need_root()
    first, second = verbs_peer.pair(loopback)
    assert first.do("write") == verbs_peer.SUCCESS
    assert second.use_up_descriptors() > 0
    stranger = attacks.Attacker(loopback, attack)
    used = second.process.ticks()
    time.sleep(attacks.SECONDS)
    # The process once used half a processor to a whole one.
    assert second.process.ticks() - used < 0.3 * attacks.SECONDS
    stranger.done()
    assert first.do("write") == verbs_peer.SUCCESS


def test_user_that_stands_for_others(loopback):
    """A process whose user is not mapped in its user namespace looks like any other user: it is
    refused, with the reason."""
    harness.need_root()
    process = loopback.run("unshare", "-U", "ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0",
                           user=attacks.OTHER_UID)
    assert process.popen.returncode != 0
    assert "stands for all users" in process.errors, process
    assert "does not answer" not in process.errors
    # With a mapped user the device works.
    process = loopback.run("unshare", "-Ur", "ibv_devinfo", "-d", "uroce_lo",
                           user=attacks.OTHER_UID)
    assert process.popen.returncode == 0, process
