# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures the processor time of processes that are idle, and how soon they wake up."""
import time

import harness
import verbs_peer

SECONDS_IDLE = 2
# A tick of 10 ms each for the helper's own housekeeping and for the kernel's rounding.
MOST_TICKS = 0.03


def used_while_idle(*ends):
    """Returns the processor time that each process uses in SECONDS_IDLE, in seconds, after a pause
    for earlier work to end."""
    time.sleep(0.3)
    before = [end.process.ticks() for end in ends]
    time.sleep(SECONDS_IDLE)
    return [end.process.ticks() - was for end, was in zip(ends, before)]


def check_idle(*ends):
    """Makes several tries, as earlier work may end late on a busy host."""
    harness.good_try(lambda: max(used_while_idle(*ends)), lambda used: used <= MOST_TICKS)


def woken(sender, sleeper):
    """Returns the time in seconds until a SEND has woken up a process that was idle."""
    sleeper.receive()
    sleeper.begin("wait_event")
    check_idle(sender, sleeper)
    assert not sleeper.answered(0)
    start = time.monotonic()
    assert sender.do("send") == verbs_peer.SUCCESS
    assert sleeper.answer()[0][0] == verbs_peer.SUCCESS
    return time.monotonic() - start
