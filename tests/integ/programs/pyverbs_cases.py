# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs the suite of pyverbs from a directory, and prints a line of JSON when a case begins and when
it is over, so that the caller knows which case hangs.

usage: pyverbs_cases.py DIRECTORY [CASE ...] -- ARGUMENTS-OF-THE-SUITE
"""
import json
import multiprocessing
import os
import re
import subprocess
import sys
import unittest
import warnings


def tell(**what):
    print(json.dumps(what), flush=True)


class Teller(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        tell(begin=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        tell(end=test.id())

    def addSuccess(self, test):
        tell(case=test.id(), result="passed")

    def addSkip(self, test, reason):
        tell(case=test.id(), result="skipped", why=reason)

    def addError(self, test, err):
        tell(case=test.id(), result="error", why=self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        tell(case=test.id(), result="failed", why=self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err:
            self.addError(subtest, err)


def each_case(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from each_case(item)
        else:
            yield item


def name_interfaces():
    """Lets librdmacm's cases find a device's interface: they look in /sys/class/infiniband, which
    has only the kernel's devices."""
    of_device = re.compile("/sys/class/infiniband/uroce_([^/]+)/device/net/")
    real_exists, real_output = os.path.exists, subprocess.check_output

    def exists(path):
        return of_device.fullmatch(str(path)) is not None or real_exists(path)

    def check_output(command, *words, **options):
        ours = of_device.fullmatch(command[-1]) if command[0] == "ls" else None
        return (ours[1] + "\n").encode() if ours else real_output(command, *words, **options)

    os.path.exists, subprocess.check_output = exists, check_output


def main():
    border = sys.argv.index("--")
    folder, wanted, told = sys.argv[1], sys.argv[2:border], sys.argv[border + 1:]
    # Like the suite's run_tests.py: modules are found in the directory and as package "tests".
    sys.path[:0] = [os.path.join(folder, "tests"), folder]
    sys.argv[1:] = told
    # In a view (uroce-run) the interfaces are where the suite looks for them.
    if not os.path.isdir(os.path.join("/sys/class/infiniband", told[told.index("--dev") + 1])):
        name_interfaces()
    # The suite was written for this method; the default of Python 3.14 would have to send the
    # cases' results, an open file among them, to the new process.
    multiprocessing.set_start_method("fork")
    warnings.simplefilter("ignore")
    from args_parser import parser
    parser.parse_args()
    import tests
    cases = list(each_case(unittest.defaultTestLoader.loadTestsFromModule(tests)))
    result = Teller()
    for case in cases:
        if not wanted or case.id() in wanted:
            case(result)
    # A module whose setup fails, for example, is not a case, but is reported as an error.
    tell(ran=result.testsRun)
    sys.stdout.flush()
    # Objects that are left end with the process: the order in which to destroy them is up to the
    # suite.
    os._exit(0)


main()
