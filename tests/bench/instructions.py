# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""
Instructions in user space for each message, as callgrind counts them.

Both sides of a perftest program run under callgrind, twice, with a short and a long run; the
difference is free of what a process does once.  What counts is uroce's own code, the plug-in and
the drop-in: neither perftest nor libc, ISA-L or the kernel.

How often a process polls in vain depends on how long it has to wait for its peer, which says
nothing about the code but changes the count of each run.  So those polls are counted too, by the
calls of the function that is reached by nothing else; a process that does nothing but poll in vain
tells what one costs; and that times their number is taken off.  Their number stands beside it.

valgrind lets one thread run at a time and makes it about 50 times slower, so the clock of
the processes is made as much slower (slow_clock.c); otherwise ACKs would cease to wait for the data
that they travel with.  The helper thread, which sleeps while somebody polls, is counted as well.
"""
import collections
import dataclasses
import functools
import os
import re
import shutil
import tempfile
import time

import host
import programs

IDLE_POLL = "yield_sometimes"
IDLE_LENGTHS = (2000, 12000)
TIMEOUT = 240
SIDES = ("server", "client")


@dataclasses.dataclass
class Counts:
    """What one process, or the difference of two, has executed."""
    functions: collections.Counter  # instructions, by (library, function)
    calls: collections.Counter

    def minus(self, other):
        functions, calls = self.functions.copy(), self.calls.copy()
        functions.subtract(other.functions)
        calls.subtract(other.calls)
        return Counts(functions, calls)

    def own(self):
        """Instructions of uroce's libraries."""
        ours = os.path.realpath(host.LIBRARIES) + os.sep
        return sum(n for (library, _), n in self.functions.items() if library.startswith(ours))


def _name(names, text):
    """callgrind writes a name once, with a number that stands for it from then on."""
    number, _, name = text.partition(" ")
    if name:
        # Of a function that was made local, or into several, the name is what is in the source.
        names[number] = re.sub(r"\.(part|constprop|isra|cold|lto_priv).*", "", name)
    return names[number]


def read(path):
    """The file of callgrind, with instructions as the only event."""
    libraries, functions = {}, {}
    found = Counts(collections.Counter(), collections.Counter())
    library = function = callee = None
    inclusive = False
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, _, value = line.rstrip("\n").partition("=")
            if key == "ob":
                library = re.sub(r"^\(\d+\) ", "", value)
                library = libraries.setdefault(value.split(" ")[0], library)
            elif key == "cob":
                libraries.setdefault(value.split(" ")[0], re.sub(r"^\(\d+\) ", "", value))
            elif key == "fn":
                function = _name(functions, value)
            elif key == "cfn":
                callee = _name(functions, value)
            elif key == "calls":
                found.calls[callee] += int(value.split()[0])
                inclusive = True
            elif re.match(r"[-+*\d]", line):
                # The line behind "calls" is what the callee has used.
                if not inclusive:
                    found.functions[(library, function)] += int(line.split()[1])
                inclusive = False
    return found


def _watch(path):
    return ["valgrind", "--tool=callgrind", "--dump-line=no", f"--callgrind-out-file={path}"]


def _environment():
    if not shutil.which("valgrind"):
        raise host.Skipped("valgrind is not installed")
    return {"LD_PRELOAD": host.program("slow_clock.so")}


def _count_both(program, length, arguments):
    """Of the server and the client."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, side) for side in SIDES]
        programs.perftest(program, *arguments, "-n", length, env=_environment(), timeout=TIMEOUT,
                          under=[_watch(path) for path in paths])
        return [read(path) for path in paths]


@functools.lru_cache(None)
def idle_poll():
    """Instructions of one poll in vain."""
    own = []
    with tempfile.TemporaryDirectory() as folder:
        for length in IDLE_LENGTHS:
            path = os.path.join(folder, str(length))
            command = [*_watch(path), host.program("idle"), programs.DEVICE, str(length)]
            with programs.started(command, host.CLIENT_CPU,
                                  host.environment(_environment())) as process:
                process.finish(time.monotonic() + TIMEOUT)
            own.append(read(path).own())
    return (own[1] - own[0]) / (IDLE_LENGTHS[1] - IDLE_LENGTHS[0])


@dataclasses.dataclass
class Side:
    """For each message or round trip, on one side."""
    all: float
    idle_polls: float
    counts: Counts
    messages: int

    def busy(self):
        """Without what polls in vain have used."""
        return self.all - self.idle_polls * idle_poll()


@functools.lru_cache(None)
def of(program, lengths, *arguments):
    """Server's and client's Side; counted once, as it comes out alike."""
    short, long = (_count_both(program, length, arguments) for length in lengths)
    messages = lengths[1] - lengths[0]
    sides = []
    for before, after in zip(short, long):
        counts = after.minus(before)
        sides.append(Side(counts.own() / messages, counts.calls[IDLE_POLL] / messages, counts,
                          messages))
    return sides
