# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Processes of other users can neither read from ours, nor hold them up, nor starve them."""
import contextlib
import os
import time

import pytest

import attacks
import harness
import verbs_peer

CONTAINED = 12345
STALL = 0.010
# If a sleep of 1 ms takes this much longer in a process without uroce, the host is the reason.
HOST_STALL = 0.005
MOST_BYSTANDERS = 8
# Limit for closing, which takes more work, but only once.
CLOSE_STALL = 0.050
ATTACKS = ["messages", "descriptors", "flood", "hold"]
# Descriptors that a user may be unable to open.
OPTIONAL = {"tty", "udp of the port"}


def descriptors(end):
    """Returns the process's open files by descriptor, without timers, which a CQ may create at any
    time."""
    folder = f"/proc/{end.pid}/fd"
    found = {}
    for name in os.listdir(folder):
        # The descriptor may have been closed since listdir().
        with contextlib.suppress(FileNotFoundError):
            found[name] = os.readlink(os.path.join(folder, name))
    return {name: what for name, what in found.items() if "timerfd" not in what}


class Victims:
    """Two pairs; the first end of one polls, that of the other sleeps until an event arrives.

    The second ends sleep in read() all the time: their helper threads process the writes to them.
    """

    def __init__(self, place, under=(), **options):
        self.place = place
        attacks.await_no_broker(place)
        self.ends = [verbs_peer.VerbsPeer(place, under, **options) for _ in range(4)]
        for end in self.ends:
            end.here = end.open(place.device, place.gid_index(4))
        self.pairs = [self.ends[:2], self.ends[2:]]
        for first, second in self.pairs:
            first.connect(second.here)
            second.connect(first.here)
        # One on each processor.
        self.bystanders = {number: verbs_peer.VerbsPeer(place)
                           for number in sorted(os.sched_getaffinity(0))[:MOST_BYSTANDERS]}
        self.pace(0.3)
        self.descriptors = [descriptors(end) for end in self.ends]

    def pace(self, seconds):
        """Returns the results of End.pace() of both pairs, at the same time, and the longest time
        that End.longest_sleep() returned for a bystander."""
        for number, one in self.bystanders.items():
            one.begin("longest_sleep", seconds, number)
        for sleeping, (first, second) in enumerate(self.pairs):
            first.begin("pace", seconds, bool(sleeping), [first.pid, second.pid])
        found = [first.answer(seconds + harness.PATIENCE) for first, _ in self.pairs]
        assert None not in found
        return found, max(one.answer() for one in self.bystanders.values())

    def more_than_before(self, end):
        before = self.descriptors[self.ends.index(end)]
        return {name: what for name, what in descriptors(end).items() if name not in before}

    def check_nothing_is_left(self):
        for first, _ in self.pairs:
            assert first.exchange(100, 4000, 7) == 100
        # If a thread must close descriptors, it may do so late on a busy host.
        until = time.monotonic() + harness.PATIENCE
        while [descriptors(end) for end in self.ends] != self.descriptors:
            assert time.monotonic() < until, list(map(self.more_than_before, self.ends))
            time.sleep(0.05)
        # No process is kept busy by descriptors or messages that the other user has left behind.
        harness.in_time(self.used, 0.15)

    def used(self):
        """Returns the most processor time that a victim used in half a second."""
        before = [end.process.ticks() for end in self.ends]
        time.sleep(0.5)
        return max(end.process.ticks() - was for end, was in zip(self.ends, before))

    def end(self):
        """Closes all ends; returns the longest time of a close(), in seconds, which descriptors of
        other users may delay."""
        took = [end.held_up("close") for end in self.ends]
        print("end", took)
        for end in self.ends:
            end.end()
        return max(took)


# Victims of root, on this kernel and as on a kernel before 6.16; and victims of a user that is root
# in a user namespace, in which all other users have the overflow uid.
HOSTS = {"root": {}, "old kernel": {"env": attacks.OLD_KERNEL},
         "container": {"user": CONTAINED, "under": ["unshare", "-Ur"]}}


def attacked(place, host):
    """Returns other victims, after the same attacks."""
    made = Victims(place, **HOSTS[host])
    for attack in ATTACKS:
        attacks.Attacker(place, attack).done()
    return made


@pytest.fixture(scope="module", params=HOSTS)
def victims(request, loopback_of_module):
    harness.need_root()
    try:
        made = Victims(loopback_of_module, **HOSTS[request.param])
        made.host = request.param
        yield made
        if made.end() >= CLOSE_STALL:
            harness.in_time(lambda: attacked(loopback_of_module, request.param).end(), CLOSE_STALL)
    finally:
        loopback_of_module.close()


def check_attack(host, attack, done):
    """Checks that the attacker could carry out its attack."""
    sent = "{} with descriptors" if attack == "descriptors" else "{}"
    if attack == "hold":
        assert done["connected SEQPACKET"] > 50, done
    else:
        name = sent.format("SEQPACKET")
        assert done.get(name, 0) + done.get("not: " + name, 0) > 0, done
    if attack == "messages":
        assert all(done[f"kind {kind}"] > 0 for kind in attacks.message_kinds()), done
    if (host, attack) == ("old kernel", "descriptors"):
        assert done.get("SEQPACKET with descriptors", 0) > 0, done
    if attack == "descriptors":
        made = {name for name in done if name.startswith("made ")}
        missing = {name[len("not: made "):] for name in done if name.startswith("not: made ") and
                   name[len("not: "):] not in made}
        assert missing <= OPTIONAL and len(made) > 20, done


def held_up_by(victims, attack, way):
    """Returns the longest delay of the victims' writes during an attack, in seconds, or None if the
    host has caused it."""
    stranger = attacks.Attacker(victims.place, attack, way, attacks.SECONDS + 0.3)
    found, host_stall = victims.pace(attacks.SECONDS)
    done = stranger.done()
    print(victims.host, attack, way, [[round(n, 4) for n in one] for one in found], done,
          "host", host_stall)
    check_attack(victims.host, attack, done)
    held_up = max(held_up for held_up, *_ in found)
    return None if held_up >= STALL and host_stall >= HOST_STALL else held_up


@pytest.mark.parametrize("way", attacks.WAYS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_attack(victims, attack, way):
    if way == "namespace" and victims.host != "root":
        pytest.skip("as for root")
    harness.in_time(lambda: held_up_by(victims, attack, way), STALL)
    victims.check_nothing_is_left()
