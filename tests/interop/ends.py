# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs interop_end on both sides, and says what uroce has counted meanwhile."""
import json
import os
import re
import time

import harness

PROGRAM = os.path.join(harness.BUILD, "tests", "bin", "interop_end")
LONG = os.environ.get("UROCE_INTEROP") == "long"
ALL_KINDS, UNRELIABLE_KINDS = "siwWrfc", "siW"
# What an idle wire and an honest peer must not bring.
REFUSALS = ("icrc_err", "malformed_pkts", "wrong_source", "bad_pkey")


class Report:
    """One end's line, and for uroce's what uroce-stat has said at the end."""

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
    if not hasattr(place, "mount"):  # the guest keeps it
        if place.device == "rxe0":
            place.mount = place.push(PROGRAM)
        else:
            place.mount = PROGRAM
    return place.mount


def start(server, *arguments, version=4, env=None):
    """((uroce's process, its file of counters), the guest's process)."""
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
    """What it has written, and the counters of one that has said why it stood still."""
    stat = getattr(process, "stat", "")
    text = f"exit code {process.popen.returncode}: {process}"
    if os.path.exists(stat):
        with open(stat, encoding="utf-8") as file:
            text += "\n--- counters\n" + file.read()
    return text


def finish(*processes, seconds=harness.PATIENCE):
    """Wait until all have ended well; the first that has not ends the others, and all are shown."""
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
    """(uroce's report, the guest's) of what start() has started and has ended well."""
    (ours, stat), theirs = started
    return Report(ours, stat), Report(theirs)


def run(server, *arguments, seconds=harness.PATIENCE, **options):
    """(uroce's report, the guest's) of a run in which all was right."""
    started = start(server, *arguments, **options)
    finish(*processes(started), seconds=seconds)
    return reports(started)
