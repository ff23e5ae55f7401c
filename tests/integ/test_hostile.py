# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Processes of other users can neither read from ours, nor hold them up, nor starve them."""
import json
import os
import re
import sys
import time

import pytest

import harness
import talk

STRANGER = 54321
SECONDS = 20 if harness.LONG else 3
STALL = 0.010
ATTACKS = ["messages", "descriptors", "flood", "hold", "squat"]
# A stranger in a user namespace of its own looks like another one from inside of ours.
WAYS = {"user": [], "namespace": ["unshare", "-U"]}


def abi_version():
    path = os.path.join(harness.ROOT, "kernel-headers", "rdma", "uroce-abi.h")
    with open(path, encoding="utf-8") as file:
        return int(re.search(r"#define UROCE_ABI_VERSION (\d+)", file.read())[1])


class Stranger:
    def __init__(self, place, attack, way, seconds=SECONDS, decoy=False):
        """A decoy does the same work, but to names that nobody has."""
        program = place.scratch.copy("stranger.py")
        self.process = harness.Process(place, *WAYS[way], harness.PYTHON, program,
                                       9999 if decoy else abi_version(), attack, seconds,
                                       talk=True, user=STRANGER)
        assert self.process.popen.stdout.readline() == "ready\n", self.process.errors

    def done(self):
        """What it could do; it ends without cleaning up."""
        line = self.process.popen.stdout.readline()
        self.process.kill()
        assert line, self.process.errors
        return json.loads(line)


def descriptors(end):
    return len(os.listdir(f"/proc/{end.pid}/fd"))


def pace(ends, seconds):
    """A pair that polls and one that sleeps, at the same time: the worst of each."""
    for sleeping, (first, _) in enumerate(ends):
        first.begin("pace", seconds, bool(sleeping))
    found = [first.answer(seconds + harness.PATIENCE) for first, _ in ends]
    assert None not in found
    return [worst for worst, *_ in found]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_attack(loopback, attack, way):
    harness.need_root()
    ends = [talk.pair(loopback), talk.pair(loopback)]
    everybody = [end for pair in ends for end in pair]
    pace(ends, 0.3)
    before = [descriptors(end) for end in everybody]
    # Whoever works on this host holds ours up: judged by what is normal, and not by once.
    for _ in range(3):
        decoy = Stranger(loopback, attack, way, SECONDS + 0.5, decoy=True)
        normal = pace(ends, SECONDS)
        decoy.done()
        stranger = Stranger(loopback, attack, way, SECONDS + 0.5)
        worst = pace(ends, SECONDS)
        done = stranger.done()
        print(attack, way, "worst", worst, "normal", normal, done)
        assert done.get("answers", 0) == 0
        assert attack == "squat" or sum(done.values()) > 0
        if all(under < STALL + 2 * usual for under, usual in zip(worst, normal)):
            break
    else:
        raise AssertionError(f"held up: {worst}, normally {normal}")
    for first, _ in ends:
        assert first.exchange(100, 4000, attack) == 100
    time.sleep(0.1)
    assert [descriptors(end) for end in everybody] == before
    # Nobody is busy with what the stranger has left behind.
    used = [end.process.ticks() for end in everybody]
    time.sleep(2)
    assert all(end.process.ticks() - was < 0.4 for end, was in zip(everybody, used))
    for end in everybody:
        end.end()


@pytest.mark.parametrize("attack", ATTACKS)
def test_others_come_in_meanwhile(loopback, attack):
    """Processes can begin, connect and be asked while strangers do what they can."""
    harness.need_root()
    first = talk.open_end(loopback)
    stranger = Stranger(loopback, attack, "user")
    for _ in range(3):
        start = time.monotonic()
        second = talk.open_end(loopback)
        first_shown = {process["pid"] for process in loopback.stat()}
        assert {first.pid, second.pid} <= first_shown
        second.end()
        assert time.monotonic() - start < 10
    assert stranger.done().get("answers", 0) == 0
    first.end()


@pytest.mark.parametrize("attack", ["hold", "descriptors"])
def test_no_descriptor_is_left(loopback, attack):
    """Who cannot accept anybody does not try it all the time."""
    harness.need_root()
    first, second = talk.pair(loopback)
    assert first.do("write") == talk.SUCCESS
    assert second.use_up_descriptors() > 0
    stranger = Stranger(loopback, attack, "user")
    used = second.process.ticks()
    time.sleep(SECONDS)
    # It was half a processor to a whole one.
    assert second.process.ticks() - used < 0.3 * SECONDS
    stranger.done()
    assert first.do("write") == talk.SUCCESS


def test_user_that_stands_for_others(loopback):
    """Without a user of its own it could not be told from strangers: refused, and told why."""
    harness.need_root()
    process = loopback.run("unshare", "-U", "ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0",
                           user=STRANGER)
    assert process.popen.returncode != 0
    assert "stands for all users" in process.errors, process
    assert "does not answer" not in process.errors
    # With one there is nothing to complain of.
    process = loopback.run("unshare", "-Ur", "ibv_devinfo", "-d", "uroce_lo", user=STRANGER)
    assert process.popen.returncode == 0, process


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
