# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The test's side of programs/datagram_end.c, a process with a UD queue pair."""
import ipaddress
import os
import selectors
import shutil

import harness

PROGRAM = os.path.join(harness.BUILD, "tests", "datagram_end")
HOPS, CLASS = 77, 0x28


class End:
    def __init__(self, place):
        self.place = place
        program = os.path.join(place.scratch.path, "datagram_end")
        if not os.path.exists(program):
            shutil.copy(PROGRAM, program)
        self.process = place.start(program, place.device, interactive=True)
        self.qpn = int(self.answer())

    def answer(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.popen.stdout, selectors.EVENT_READ)
            assert selector.select(harness.PATIENCE), f"no answer: {self.process}"
        line = self.process.popen.stdout.readline()
        assert line, self.process
        return line.strip()

    def tell(self, *words):
        self.process.popen.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.popen.stdin.flush()
        return self.answer()

    def attach(self, gid):
        assert self.tell("attach", gid) == "0"

    def detach(self, gid):
        assert self.tell("detach", gid) == "0"

    def send(self, gid, qpn, version, count=1):
        assert self.tell("send", gid, self.place.gid_index(version), qpn, HOPS, CLASS, count) == "0"

    def receive(self, milliseconds=20000):
        """Returns (version, source, destination, hop limit, traffic class) of the next datagram, or
        None."""
        text = self.tell("receive", milliseconds)
        if text == "none":
            return None
        header = bytes.fromhex(text)
        if header[0] >> 4 == 6:
            addresses = header[8:24], header[24:40]
            hops, traffic_class = header[7], (header[0] & 15) << 4 | header[1] >> 4
            return 6, *map(ipaddress.ip_address, addresses), hops, traffic_class
        header = header[20:]
        assert header[0] == 0x45, text
        return (4, ipaddress.ip_address(header[12:16]), ipaddress.ip_address(header[16:20]),
                header[8], header[1])
