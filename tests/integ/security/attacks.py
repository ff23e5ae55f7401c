# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The tests' side of other_user.py."""
import json
import os
import re
import time

import harness

OTHER_UID = 54321
SECONDS = 20 if harness.LONG else 1.5
# A process of another user in a user namespace of its own has the overflow uid in ours.
WAYS = {"user": [], "namespace": ["unshare", "-U"]}
# Lets uroce work as on kernels before 6.16, which cannot keep descriptors out of a connection.  A
# broker reads the variable when it starts: see await_no_broker().
OLD_KERNEL = {"UROCE_TEST_OLD_KERNEL": "1"}


def await_no_broker(place):
    """Waits until no broker runs, so that the next process starts one in its own environment."""
    until = time.monotonic() + harness.PATIENCE
    name = re.compile(r"@uroce-broker/\d+/\d+$")
    while place.holder and any(map(name.search, place.net("unix"))):
        assert time.monotonic() < until, "a broker does not end"
        time.sleep(0.05)


def messages_header():
    path = os.path.join(harness.ROOT, "kernel-headers", "rdma", "uroce-broker.h")
    with open(path, encoding="utf-8") as file:
        return file.read()


def message_kinds():
    body = re.search(r"enum uroce_broker_type \{(.*?)\};", messages_header(), re.S)[1]
    return range(1, 1 + len(re.findall(r"\tUROCE_BROKER_\w+", body)))


class Attacker:
    def __init__(self, place, attack, way="user", seconds=SECONDS):
        program = place.scratch.copy("security/other_user.py")
        version = re.search(r"#define UROCE_BROKER_VERSION (\d+)", messages_header())[1]
        self.process = harness.Process(place, *WAYS[way], harness.PYTHON, program, version,
                                       len(message_kinds()), attack, seconds, interactive=True,
                                       user=OTHER_UID)
        assert self.process.popen.stdout.readline() == "ready\n", self.process.errors

    def done(self):
        """Waits for the end of the attack; returns the attacker's counts of its actions.  It is
        killed, without cleaning up."""
        line = self.process.popen.stdout.readline()
        self.process.kill()
        assert line, self.process.errors
        done = json.loads(line)
        assert done.get("answers", 0) == 0
        return done
