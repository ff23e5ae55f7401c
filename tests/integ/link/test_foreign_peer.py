# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A peer whose IP stack chooses IPv4 identifications in any way: no packet with a correct ICRC is
refused, on eight queue pairs at once, after pauses and jumps of the identification."""
import ipaddress
import json
import random
import time

import pytest

import harness
import shm
import verbs_peer

QPS, DEPTH = 8, 60
SEND_ONLY = {"RC": 0x04, "UC": 0x24}
# Pauses in seconds.  Those longer than WAITED are skipped, but the identifications jump as if the
# time had passed.
PAUSES = [0, 0.05, 1, 5, 60]
WAITED = 60 if harness.LONG else 1


class Stack:
    """Returns IPv4 identifications; pause() is called for time that has passed."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.number = self.rng.randrange(65536)

    def pause(self, seconds):
        pass

    def next(self):
        return self.number


class Constant(Stack):
    pass


class Zero(Stack):
    def next(self):
        return 0


class Counter(Stack):
    """As Linux: one counter per destination address, which jumps after each pause."""

    def pause(self, seconds):
        self.number += self.rng.randrange(int(seconds * 1000) + 1)

    def next(self):
        self.number = self.number + 1 & 0xFFFF
        return self.number


class Random(Stack):
    def next(self):
        return self.rng.randrange(65536)


def gid_of(address):
    # .exploded ends like an IPv4 address from Python 3.13 on, which pyverbs does not read.
    return ipaddress.IPv6Address("::ffff:" + address).packed.hex(":", 2)


class Peer:
    """The raw peer, and our queue pairs that receive its packets."""

    def __init__(self, place, kind):
        self.place, self.kind = place, kind
        self.end = verbs_peer.VerbsPeer(place)
        self.qpns, self.sent = [], [0] * QPS
        for i in range(QPS):
            here = self.end.of(i, "open", place.device, place.gid_index(4), kind=kind)
            # The peer has no such queue pair, and nothing replies there.
            there = {"gid": gid_of(place.peer.address), "qpn": 0x500000 + i}
            self.end.of(i, "connect", there)
            for _ in range(DEPTH):
                self.end.of(i, "receive", length=16)
            self.qpns.append(here["qpn"])
        name, other = place.peer.device, place.device
        self.process = harness.Process(
            place.peer, harness.PYTHON, place.scratch.copy("link/raw_peer.py"),
            name.removeprefix("uroce_"), self.mac(place.peer, name), self.mac(place, other),
            place.peer.address, place.address, interactive=True)

    @staticmethod
    def mac(place, device):
        link = place.output_of("ip", "-j", "link", "show", device.removeprefix("uroce_"))
        return json.loads(link)[0]["address"]

    def send(self, stack, numbers):
        """Sends a packet to each of these queue pairs, all at once."""
        packets = []
        for i in numbers:
            packets.append([SEND_ONLY[self.kind], self.qpns[i], self.sent[i], stack.next()])
            self.sent[i] += 1
        self.process.popen.stdin.write(json.dumps(packets) + "\n")
        self.process.popen.stdin.flush()
        assert int(self.process.popen.stdout.readline()) == len(packets)

    def check(self):
        """Everything that was sent has arrived, and nothing was refused."""
        got = [self.end.of(i, "wait", self.sent[i]) for i in range(QPS)]
        counters = shm.counters(self.place, self.end)[0]
        assert counters["icrc_err"] == 0, counters
        assert [len(found) for found in got] == self.sent
        assert all(status == verbs_peer.SUCCESS for found in got for status, *_ in found)


@pytest.mark.parametrize("kind", ["RC", "UC"])
@pytest.mark.parametrize("stack", [Constant, Zero, Counter, Random])
def test_leaps(veth, kind, stack):
    peer, numbers = Peer(veth, kind), stack(kind)
    for seconds in PAUSES:
        time.sleep(seconds if seconds <= WAITED else 0)
        numbers.pause(seconds)
        for _ in range(6):
            peer.send(numbers, numbers.rng.choices(range(QPS), k=4))
    peer.check()
