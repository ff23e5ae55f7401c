# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The test's side of verbs_peer_main.py: VerbsPeer has every method of the End there."""
import json
import selectors

import harness

SUCCESS, LOC_PROT_ERR, WR_FLUSH_ERR, REM_INV_REQ_ERR, REM_ACCESS_ERR = 0, 4, 5, 9, 10
RETRY_EXC_ERR = 12


class VerbsPeer:
    def __init__(self, place, under=(), **options):
        self.place = place
        program = place.scratch.copy("support/verbs_peer_main.py")
        self.process = harness.Process(place, *under, harness.PYTHON, program, interactive=True,
                                       **options)
        self.pid = self.process.pid
        self.input, self.output = self.process.popen.stdin, self.process.popen.stdout

    def begin(self, method, *arguments, **options):
        """Starts a method without waiting for the answer."""
        self.input.write(json.dumps([method, arguments, options]) + "\n")
        self.input.flush()

    def answered(self, seconds=harness.PATIENCE):
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            return bool(selector.select(seconds))

    def answer(self, seconds=harness.PATIENCE):
        if not self.answered(seconds):
            self.process.kill()
            raise harness.Timeout(f"no answer after {seconds} s: {self.process}")
        line = self.output.readline()
        assert line, f"ended: {self.process.errors}"
        return json.loads(line)

    def __getattr__(self, method):
        def call(*arguments, **options):
            self.begin(method, *arguments, **options)
            return self.answer()
        return call

    def end(self):
        """Makes the program exit by itself, so that its exit handlers run."""
        self.input.close()
        assert self.process.wait() == 0, self.process.errors
        assert self.process.errors == ""


def start(place, version=4, **options):
    end = VerbsPeer(place)
    end.here = end.open(place.device, place.gid_index(version), **options)
    return end


def pair(place, open_options=None, **options):
    """Returns two connected ends, the second one in the place's peer."""
    first = start(place, **(open_options or {}))
    second = start(place.peer, **(open_options or {}))
    first.connect(second.here, **options)
    second.connect(first.here, **options)
    return first, second
