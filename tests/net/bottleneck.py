# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Two hosts with a slow router between them, on one machine.

    a (192.0.2.1) --- ra  router r  rb --- (198.51.100.2) b

Each of the three is a network namespace.  The router sends to b through a queue (tbf) at the line
rate; in front of the queue, marker.bpf.c marks (ECN) and drops packets.  Segmentation offload is
off at both hosts: a GSO packet would cross the router, and be marked or lost, as a whole.  Flows
must send their data from a to b.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integ", "support"))
import harness  # noqa: E402

LINE = 25_000_000            # bytes per second: 200 Mb/s
BURST = 9000                 # burst of tbf, bytes: two packets
DEEP, SHALLOW = 500_000, 60_000  # bytes of queue
MARK_RATE, MARK_ABOVE = 24_000_000, 30_000
MTU = 4200                   # room for packets of a path MTU of 4096
TCP_PORT = 5300              # of all measured TCP flows: the marker drops TCP packets by this port
MARKER = os.path.join(HERE, "marker.bpf.c")


class Bottleneck:
    """Places a, r and b.  set() configures the router."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.a, self.r, self.b = three_places(scratch)
        self.a.peer, self.b.peer = self.b, self.a
        for place in self.r, self.a, self.b:
            script(place, *(f"echo {int(place is self.r)} > "
                            f"/proc/sys/net/{family}/conf/all/forwarding"
                            for family in ("ipv4", "ipv6")))
        self.join(self.a, "a0", "ra", 1)
        self.join(self.b, "b0", "rb", 2)
        for place in self.a, self.b:
            harness.await_carrier(place)
        self.set()

    def join(self, host, inner, outer, number):
        """Connect the host and the router by a pair of interfaces; number: of the host."""
        net, net6 = ["192.0.2", "198.51.100"][number - 1], f"2001:db8:{number}:"
        host.device, host.address, host.address6 = (f"uroce_{inner}", f"{net}.{number}",
                                                    f"{net6}:{number}")

        def up(name, last):
            return (f"ip link set {name} up", f"ip address add {net}.{last}/24 dev {name}",
                    f"ip address add {net6}:{last}/64 dev {name} nodad")

        # gso_max_segs 1: the kernel segments before the interface, so there are no GSO packets.
        script(host, f"ip link add {inner} mtu {MTU} gso_max_segs 1 type veth "
                     f"peer name {outer} mtu {MTU} netns {self.r.holder.pid}",
               *up(inner, number), f"ip route add default via {net}.254",
               f"ip -6 route add default via {net6}:254")
        script(self.r, *up(outer, 254))

    def set(self, queue=DEEP, marks=False, loss=0.0, seed=1, rate=LINE):
        """queue: bytes; marks: mark ECT packets, and let TCP negotiate ECN; loss: fraction."""
        for place in self.a, self.b:
            script(place, f"echo {int(marks)} > /proc/sys/net/ipv4/tcp_ecn")
        lines = [f"tc qdisc replace dev rb root tbf rate {rate * 8}bit burst {BURST} limit {queue}"]
        mark_rate = MARK_RATE * rate // LINE if marks else 0
        for name, marking in ("rb", mark_rate), ("ra", 0):
            lines += [f"tc qdisc delete dev {name} clsact 2>/dev/null || true",
                      f"tc qdisc add dev {name} clsact"]
            if marking or loss:
                program = self.marker(marking, queue, loss, seed)
                lines.append(f"tc filter add dev {name} egress bpf direct-action "
                             f"object-file {program} section tc")
        script(self.r, *lines)

    def marker(self, mark_rate, queue, loss, seed):
        """Compile the BPF program and return its path; skips the test if it cannot be loaded."""
        if os.geteuid() != 0 or "-U" in self.r.prefix:
            pytest.skip("only root may load BPF programs, which mark and lose packets")
        if not shutil.which("clang"):
            pytest.skip("clang is not installed, which builds the BPF program")
        path = self.scratch.file("bpf.o")
        values = {"MARK_RATE": f"{mark_rate}ull", "MARK_ABOVE": MARK_ABOVE, "QUEUE_MAX": queue,
                  "LOSS": f"{round(loss * (1 << 32))}u", "LOSS_PORT": TCP_PORT,
                  "SEED": f"{seed}ull"}
        # clang does not look where Debian keeps <asm/types.h> when it builds for bpf.
        headers = f"-I/usr/include/{sysconfig.get_config_var('MULTIARCH')}"
        subprocess.run(["clang", "-O2", "-g", "-target", "bpf", headers,
                        *(f"-D{name}={value}" for name, value in values.items()), "-c", MARKER,
                        "-o", path], check=True)
        return path

    def dropped(self):
        """Packets that were lost on purpose since the last set()."""
        shown = json.loads(self.r.output_of("tc", "-s", "-json", "qdisc", "show"))
        return sum(row["drops"] for row in shown if row["kind"] == "clsact")

    def marked(self):
        """Packets with CE that b has received so far."""
        names, values = (line.split() for line in self.b.net("netstat")
                         if line.startswith("IpExt:"))
        return int(values[names.index("InCEPkts")])

    def close(self):
        for place in self.a, self.b, self.r:
            place.close()


def script(place, *lines):
    """Run shell commands at a place in one process: many processes cost seconds on a busy host."""
    place.output_of("sh", "-ec", "\n".join(lines))


def three_places(scratch):
    first = harness.new_namespace(scratch)
    others = [first and harness.new_namespace(scratch, first) for _ in range(2)]
    if not all(others):
        for place in [first, *others]:
            if place:
                harness.release(place)
        pytest.skip("network namespaces are not permitted here")
    return first, *others


@contextlib.contextmanager
def bottleneck(scratch):
    """A Bottleneck for as long as the context lasts."""
    lab = None
    try:
        lab = Bottleneck(scratch)
        yield lab
    finally:
        if lab:
            for place in lab.b, lab.r, lab.a:
                harness.release(place)
