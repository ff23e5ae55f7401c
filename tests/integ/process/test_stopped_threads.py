# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A process still responds if one of its threads gets no processor: another thread takes over.

Otherwise the peer would give up after eight timeouts ("transport retry counter exceeded").  Here a
debugger stops one thread at a time; on a busy host the scheduler does.
"""
import contextlib
import ctypes
import os
import time

import pytest

import harness
import verbs_peer

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WAIT_ALL = 0x40000000  # __WALL, for threads
STOPPED = 0.15
HELD_UP = 0.05
LESS_THAN_RETRIES = 0.45  # the retries take twice 67 ms and then six times 268 ms
TIMES = 8
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


# Connects to all brokers again and again, and sends no request.
SILENT = """
import socket, time
names = {line.split()[-1] for line in open("/proc/net/unix")}
names = [chr(0) + name[1:] for name in names if name.startswith("@uroce-broker/") and
         "/slot/" not in name]
assert names
held = []
for _ in range(8):
    for name in names:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect(name)
        held.append(sock)
    time.sleep(0.1)
"""


def ptrace(request, thread):
    if LIBC.ptrace(request, thread, None, None) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


@contextlib.contextmanager
def stopped(thread):
    try:
        ptrace(PTRACE_SEIZE, thread)
    except PermissionError:
        pytest.skip("nobody may be traced here")
    ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, WAIT_ALL)
    try:
        yield
    finally:
        ptrace(PTRACE_DETACH, thread)


def threads(end):
    """Returns the thread ids of the process by thread name."""
    folder = f"/proc/{end.pid}/task"
    found = {}
    for thread in os.listdir(folder):
        with open(os.path.join(folder, thread, "comm"), encoding="utf-8") as file:
            found[file.read().strip()] = int(thread)
    return found


def held_up_while(first, second, thread):
    """Returns the longest delay of writes to the second process, in seconds, while its thread is
    stopped for STOPPED: STOPPED at most, even if none of its threads runs.  None if a write failed.
    """
    with stopped(thread):
        first.begin("pace", STOPPED, False, [first.pid, second.pid])
        time.sleep(STOPPED)
    paced = first.answer()
    return paced and paced[0]


def run(place, name, sleeping, times=TIMES):
    first, second = verbs_peer.pair(place)
    thread = second.pid if name == "poller" else threads(second)["uroce"]
    first.pace(0.3)
    if not sleeping:
        second.begin("wait", 1, 2 * times * STOPPED)
        time.sleep(0.2)
    found = [held_up_while(first, second, thread) for _ in range(times)]
    print(name, "sleeping" if sleeping else "polling", found)
    if None in found:
        for end in first, second:
            end.process.kill()
        return None
    if not sleeping:
        assert second.answer() == []
    assert first.exchange(10, 4000, 1) == 10
    for end in first, second:
        end.end()
    return found


@pytest.mark.parametrize("sleeping", [False, True], ids=["polling", "sleeping"])
def test_poller(loopback, sleeping):
    """The helper thread takes over, but not from a thread that is stopped within a turn and keeps
    it.  A polling thread is within a turn half of the time; without a helper the writes would be
    delayed each time."""
    times, quantity = (TIMES, all) if sleeping else (3 * TIMES, any)
    harness.good_try(lambda: run(loopback, "poller", sleeping, times),
                     lambda found: quantity(one < HELD_UP for one in found))


def test_helper(loopback):
    """A process that polls needs no helper."""
    harness.good_try(lambda: run(loopback, "helper", False),
                     lambda found: sum(one < HELD_UP for one in found) >= TIMES - 1)


def visited(place):
    """Returns the longest delay of writes, in seconds, while a process connects again and again and
    sends no request; None if a write failed."""
    first, second = verbs_peer.pair(place)
    first.pace(0.3, True)
    visitor = place.start(harness.PYTHON, "-c", SILENT)
    paced = first.pace(1.2, True, [first.pid, second.pid])
    print("visitor", paced)
    visitor.done()
    for end in first, second:
        end.end()
    return paced and paced[0]


def test_visitor(loopback):
    """A process of this user connects, and is stopped before it sends a request."""
    # Each such connection once caused a delay of 0.2 s.
    harness.in_time(lambda: visited(loopback), HELD_UP)


@contextlib.contextmanager
def silent(end):
    """Stops all threads of the process."""
    with contextlib.ExitStack() as stack:
        for thread in threads(end).values():
            stack.enter_context(stopped(thread))
        yield


def written_to_who_was_silent(place):
    """Returns the status of a write to a process that was stopped for less than the retries take,
    or None if it was stopped for longer, as this test ran late."""
    first, second = verbs_peer.pair(place, timeout=14)
    assert first.do("write") == verbs_peer.SUCCESS
    begun = time.monotonic()
    with silent(second):
        first.begin("do", "write")
        time.sleep(0.35)
    took = time.monotonic() - begun
    status = first.answer()
    return status if took < LESS_THAN_RETRIES else None


def test_who_is_silent_for_long(loopback):
    """A peer whose threads are all stopped is given up after all retries, but not before."""
    assert harness.tries(lambda: written_to_who_was_silent(loopback)) == [verbs_peer.SUCCESS]
    first, second = verbs_peer.pair(loopback, timeout=14)
    assert first.do("write") == verbs_peer.SUCCESS
    with silent(second):
        assert first.do("write") == verbs_peer.RETRY_EXC_ERR
