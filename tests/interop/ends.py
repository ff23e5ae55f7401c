# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs interop_end on both sides, and reads the counters of uroce's side."""
import json
import os
import re
import time

import harness

PROGRAM = os.path.join(harness.BUILD, "tests", "bin", "interop_end")
LONG = os.environ.get("UROCE_INTEROP") == "long"
ALL_KINDS, UNRELIABLE_KINDS = "siwWrfc", "siW"
# Counters that must stay 0 if the wire damages nothing and the peer is correct.
REFUSALS = ("icrc_err", "malformed_pkts", "wrong_source", "bad_pkey")


class Report:
    """The result line of an end and, for uroce's end, the output of uroce-stat after the run."""

    def __init__(self, process, stat=None):
        text = process.output
        found = re.search(r"requests (\d+) bytes (\d+) seconds (\S+) slowest_ms (\S+)", text)
        assert found, process
        self.requests, self.bytes = int(found[1]), int(found[2])
        self.seconds, self.slowest = float(found[3]), float(found[4]) / 1000
        self.stat = None
        if stat:
            with open(stat, encoding="utf-8") as file:
                self.stat = json.load(file)[0]

    def refused(self):
        return {name: self.stat["counters"][name] for name in REFUSALS
                if self.stat["counters"][name]}

    def sum(self, name):
        return sum(qp["counters"][name] for qp in self.stat["qps"])


def program_at(place):
    if not hasattr(place, "mount"):  # the guest keeps the copy
        if place.device == "rxe0":
            place.mount = place.push(PROGRAM)
        else:
            place.mount = PROGRAM
    return place.mount


def start(server, *arguments, version=4, env=None):
    """Start both ends; returns ((uroce's process, its file of counters), the guest's process)."""
    port = server.free_port()
    started = {}
    stat = server.scratch.file("json")
    for place in server, server.peer:
        words = [program_at(place), "-d", place.device, "-g", place.gid_index(version), "-p", port,
                 *arguments]
        options = {}
        if place.device != "rxe0":
            tool = os.path.join(place.scratch.bin, "uroce-stat")
            words += ["-x", f"{tool} --json $PPID >{stat}"]
            options["env"] = env
        if place is server:
            started[place.device] = place.serve(port, *words, **options)
        else:
            started[place.device] = place.start(*words, server.address, **options)
    started["uroce_tap0"].stat = stat
    return (started["uroce_tap0"], stat), started["rxe0"]


def shown(process):
    """The output of a process, and its counters if it has written them, as after a stall."""
    stat = getattr(process, "stat", "")
    text = f"exit code {process.popen.returncode}: {process}"
    if os.path.exists(stat):
        with open(stat, encoding="utf-8") as file:
            text += "\n--- counters\n" + file.read()
    return text


def finish(*processes, seconds=harness.PATIENCE):
    """Wait until all have succeeded; if one fails or the time is over, kill and show all."""
    until = time.monotonic() + seconds
    while any([process.running() for process in processes]):
        if any(process.popen.returncode for process in processes) or time.monotonic() > until:
            for process in processes:
                process.kill()
            break
        time.sleep(0.02)
    assert not any(process.popen.returncode for process in processes), \
        "\n===\n".join(shown(process) for process in processes)


def processes(started):
    (ours, _), theirs = started
    return ours, theirs


def reports(started):
    """(uroce's report, the guest's) of processes from start() that have succeeded."""
    (ours, stat), theirs = started
    return Report(ours, stat), Report(theirs)


def run(server, *arguments, seconds=harness.PATIENCE, **options):
    """(uroce's report, the guest's) of a run, which must succeed."""
    started = start(server, *arguments, **options)
    finish(*processes(started), seconds=seconds)
    return reports(started)
