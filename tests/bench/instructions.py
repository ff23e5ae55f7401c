# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""
Instructions in user space for each message, counted by callgrind.

Both sides of a perftest program run under callgrind twice, with a short and a long run; the
difference excludes start and end of the process.  Only code of uroce counts, the plug-in and the
drop-in: not perftest, libc, ISA-L or the kernel.

The number of empty polls depends on how long a process waits for its peer, so it differs from run
to run and does not depend on the code.  They are counted by the calls of IDLE_POLL, which only an
empty poll reaches; a process that only polls an empty CQ gives the cost of one; and the product is
subtracted.  The number of empty polls is a row of its own.

valgrind runs one thread at a time, about 50 times slower than without it, so the clock of the
processes is slowed down as much (slow_clock.c); otherwise ACKs would not wait for the data that
they are sent with.

The progress thread, which sleeps while a thread polls and wakes now and then, is counted
separately: how often it wakes depends on time and on the load of the host, not on messages.  On an
idle host the number is close to zero.

On a busy host a process may wait many milliseconds for a processor, and its peer sends probes and
retransmits, work that an idle host does not have.  The number of empty polls shows such pauses: a
count with many of them is repeated, and the count with the fewest is used.
"""
import collections
import dataclasses
import functools
import glob
import os
import re
import shutil
import tempfile
import time

import host
import programs

IDLE_POLL = "maybe_yield"
IDLE_LENGTHS = (2000, 12000)
LEAST_LENGTHS = (1000, 5000)
TIMEOUT = 240
# Maximum number of empty polls per message of an undisturbed count; maximum number of counts.
FEW_POLLS = 20
MOST_COUNTS = 4
SIDES = ("server", "client")


@dataclasses.dataclass
class Counts:
    """Instructions and calls of one process, or the difference of two."""
    functions: collections.Counter  # instructions, by (library, function)
    calls: collections.Counter

    def minus(self, other):
        functions, calls = self.functions.copy(), self.calls.copy()
        functions.subtract(other.functions)
        calls.subtract(other.calls)
        return Counts(functions, calls)

    def of(self, place):
        """Instructions of the program or library at this path, or of those in this directory."""
        return sum(n for (library, _), n in self.functions.items() if library.startswith(place))

    def own(self):
        """Instructions of uroce's libraries."""
        return self.of(os.path.realpath(host.LIBRARIES) + os.sep)


def _name(names, text):
    """The name of a function; callgrind writes it once, with a number that it uses from then on."""
    number, _, name = text.partition(" ")
    if name:
        # The compiler adds such suffixes to copies and parts of a function: count it as one.
        names[number] = re.sub(r"\.(part|constprop|isra|cold|lto_priv).*", "", name)
    return names[number]


def read(path):
    """Read a file of callgrind that has instructions as the only event."""
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
                # The line after "calls" has the cost of the callee.
                if not inclusive:
                    found.functions[(library, function)] += int(line.split()[1])
                inclusive = False
    return found


def _watch(path):
    return ["valgrind", "--tool=callgrind", "--dump-line=no", "--separate-threads=yes",
            f"--callgrind-out-file={path}"]


# callgrind writes a file for each thread; this one is that of the main thread.
MAIN = "-01"


def _threads(path):
    """Counts of the main thread, and of all other threads together."""
    others = Counts(collections.Counter(), collections.Counter())
    for other in glob.glob(glob.escape(path) + "-*"):
        if not other.endswith(MAIN):
            found = read(other)
            others.functions.update(found.functions)
            others.calls.update(found.calls)
    return read(path + MAIN), others


def _environment():
    if not shutil.which("valgrind"):
        raise host.Skipped("valgrind is not installed")
    return {"LD_PRELOAD": host.program("slow_clock.so")}


def _count_both(program, length, arguments):
    """(Counts of the main thread, of the other threads) of the server and of the client."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, side) for side in SIDES]
        programs.perftest(program, *arguments, "-n", length, env=_environment(), timeout=TIMEOUT,
                          under=[_watch(path) for path in paths])
        return [_threads(path) for path in paths]


def _count_alone(lengths, *command):
    """Yields Counts of one of our programs for each length, the last word of its command."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "counts")
        for length in lengths:
            with programs.started([*_watch(path), *command, str(length)], host.CLIENT_CPU,
                                  host.environment(_environment())) as process:
                process.finish(time.monotonic() + TIMEOUT)
            yield _threads(path)[0]


@functools.lru_cache(None)
def idle_poll():
    """Instructions of one empty poll."""
    few, many = (counts.own() for counts in
                 _count_alone(IDLE_LENGTHS, host.program("idle"), programs.DEVICE))
    return (many - few) / (IDLE_LENGTHS[1] - IDLE_LENGTHS[0])


def least():
    """Instructions of one side for a round trip of the minimal program (least.c)."""
    program = host.program("least")
    few, many = (counts.of(os.path.realpath(program))
                 for counts in _count_alone(LEAST_LENGTHS, program))
    return (many - few) / (LEAST_LENGTHS[1] - LEAST_LENGTHS[0]) / len(SIDES)


@dataclasses.dataclass
class Side:
    """Instructions and empty polls for each message or round trip, on one side."""
    all: float  # of the thread that polls
    helper: float
    idle_polls: float
    counts: Counts  # of all threads
    messages: int

    def busy(self):
        """Instructions of the thread that polls, without empty polls."""
        return self.all - self.idle_polls * idle_poll()


def _count_sides(program, lengths, arguments):
    """Count once; returns the server's and the client's Side."""
    short, long = (_count_both(program, length, arguments) for length in lengths)
    messages = lengths[1] - lengths[0]
    sides = []
    for before, after in zip(short, long):
        own, helper = (more.minus(less) for less, more in zip(before, after))
        both = Counts(own.functions + helper.functions, own.calls + helper.calls)
        sides.append(Side(own.own() / messages, helper.own() / messages,
                          own.calls[IDLE_POLL] / messages, both, messages))
    return sides


@functools.lru_cache(None)
def of(program, lengths, *arguments):
    """Server's and client's Side of the counts that were disturbed least."""
    best = _count_sides(program, lengths, arguments)
    for _ in range(1, MOST_COUNTS):
        if all(abs(side.idle_polls) <= FEW_POLLS for side in best):
            break
        more = _count_sides(program, lengths, arguments)
        best = [min(pair, key=lambda side: abs(side.idle_polls)) for pair in zip(best, more)]
    return best
