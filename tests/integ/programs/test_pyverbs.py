# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The suite of rdma-core's Python binding, as Debian ships it, on uroce.

Skipped cases are compared with pyverbs-skips.txt, which has the reason for each: a case that is
skipped without being listed fails, and so does a case that is listed as skipped and passes.  To run
one case by hand:
    /usr/bin/python3 -m pytest -q tests/integ/programs/test_pyverbs.py -k loopback-ipv4
"""
import collections
import contextlib
import fcntl
import glob
import gzip
import json
import os
import re
import shutil
import tempfile
import time

import pytest

import harness

SUITE = "/usr/share/doc/rdma-core/tests"
LISTED = os.path.join(harness.HERE, "programs", "pyverbs-skips.txt")
HUGE_PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
HUGE_PAGES_LOCK = os.path.join(tempfile.gettempdir(), f"uroce-huge-pages-{os.geteuid()}.lock")
PAGES_WANTED = 16
CASE_PATIENCE = 30  # seconds for one case
LEAST_PASSED = 130
# Before each case newer suites run iproute2's rdma to list the interfaces of the kernel's devices,
# and no case runs if that fails, as it does on a kernel without RDMA.  This script prints what rdma
# prints on a kernel with RDMA but without devices.
NO_LINKS = "#!/bin/sh\necho '[]'\n"


@pytest.fixture(scope="module")
def suite(scratch):
    if not os.path.exists(os.path.join(SUITE, "run_tests.py")):
        pytest.skip("the suite is not here: package rdma-core of Debian 12 has it")
    folder = os.path.join(scratch.path, "pyverbs")
    os.makedirs(os.path.join(folder, "bin"))
    with open(os.path.join(folder, "bin", "rdma"), "w", encoding="ascii") as file:
        os.fchmod(file.fileno(), 0o755)
        file.write(NO_LINKS)
    os.makedirs(os.path.join(folder, "tests"))
    for path in glob.glob(os.path.join(SUITE, "*.py*")):
        name = os.path.join(folder, "tests", os.path.basename(path).removesuffix(".gz"))
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rb") as packed, open(name, "wb") as file:
            shutil.copyfileobj(packed, file)
    return folder


@contextlib.contextmanager
def huge_pages():
    """Some cases need pages of 2 MB, which root can reserve while they run.  The pages belong to
    the host, so two runs of this test take turns."""
    lock = open(HUGE_PAGES_LOCK, "a", encoding="ascii")
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield from made_huge_pages()
    finally:
        lock.close()


def made_huge_pages():
    try:
        with open(HUGE_PAGES, "r+", encoding="ascii") as file:
            before = file.read().strip()
            if int(before) < PAGES_WANTED:
                file.seek(0)
                file.write(str(PAGES_WANTED))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with open(HUGE_PAGES, "w", encoding="ascii") as file:
            file.write(before)


class Listed:
    """The lines of pyverbs-skips.txt: a kind (must, may, fails), a PATTERN and a TEXT."""

    def __init__(self):
        self.rows = []
        with open(LISTED, encoding="utf-8") as file:
            for line in file:
                if line.strip() and not line.startswith("#"):
                    kind, pattern, text = line.strip().split(maxsplit=2)
                    assert kind in ("must", "may", "fails"), line
                    whole = re.compile(re.escape(pattern).replace(r"\*", ".*"))
                    self.rows.append((kind, whole, text))

    def allows(self, case, why):
        return any(whole.fullmatch(case) and text in why
                   for kind, whole, text in self.rows if kind != "fails")

    def forgives(self, case, why):
        return any(whole.fullmatch(case) and text in why
                   for kind, whole, text in self.rows if kind == "fails")

    def demands(self, case):
        return any(kind == "must" and whole.fullmatch(case) for kind, whole, _ in self.rows)


def run(place, suite, gid, cases=(), way=None):
    """Runs the suite; returns (case, result, reason) of each case.

    way: view of uroce-run in which the suite finds everything where it looks for it
    """
    env, prefix = {"PATH": os.path.join(suite, "bin") + ":" + os.environ["PATH"]}, []
    if way:
        env, prefix = {}, [os.path.join(place.scratch.bin, "uroce-run"), f"--view={way}"]
    cases_of = os.path.join(harness.HERE, "programs", "pyverbs_cases.py")
    process = place.start(*prefix, harness.PYTHON, cases_of, suite, *cases, "--",
                          "--dev", place.device, "--port", "1", "--gid", gid, env=env)
    seen, running, ended = 0, "the beginning", False
    results = []
    since = time.monotonic()
    while process.running() or not ended:
        lines = process.output.splitlines(keepends=True)
        ended = not process.running()
        for line in lines[seen:]:
            if not line.endswith("\n"):
                break
            seen, since = seen + 1, time.monotonic()
            try:
                told = json.loads(line)
            except ValueError:
                continue  # the suite itself has printed something
            if isinstance(told, dict):
                running = told.get("begin", running)
                if "case" in told:
                    results.append((told["case"], told["result"], told.get("why", "")))
        if time.monotonic() - since > CASE_PATIENCE and process.running():
            process.kill()
            results.append((running, "hung", f"no end after {CASE_PATIENCE} s"))
            return results
        time.sleep(0.05)
    if process.popen.returncode != 0:
        results.append((running, "died", f"exit code {process.popen.returncode}\n"
                        f"{process.errors[-3000:]}"))
    return results


def judge(results):
    """Yields a line for each unexpected result."""
    listed = Listed()
    for case, result, why in results:
        if result == "skipped" and not listed.allows(case, why):
            yield f"{case}: skipped, and not listed: {why}"
        elif result == "passed" and listed.demands(case):
            yield f"{case}: passed, but is listed as one that is skipped"
        elif result == "error" and listed.forgives(case, why):
            continue
        elif result not in ("skipped", "passed"):
            yield f"{case}: {result}: {why}"


def check(place, suite, gid, capsys, title, way=None):
    with huge_pages():
        results = run(place, suite, gid, way=way)
    counts = collections.Counter(result for _, result, _ in results)
    with capsys.disabled():
        print(f"\npyverbs, {title}: " +
              ", ".join(f"{counts[word]} {word}" for word in sorted(counts)))
    wrong = list(judge(results))
    assert not wrong, "\n".join(wrong)
    assert counts["passed"] >= LEAST_PASSED, counts


@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
def test_on_loopback(loopback, suite, version, capsys):
    gid = loopback.gid_index(version)
    check(loopback, suite, gid, capsys, f"loopback, IPv{version}")


@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
def test_on_veth(veth, suite, version, capsys):
    gid = veth.gid_index(version)
    check(veth, suite, gid, capsys, f"veth, IPv{version}")


@pytest.mark.skipif(not harness.LONG, reason="the long form, UROCE_INTEG_LONG=1")
@pytest.mark.parametrize("way", ("namespace", "calls"))
def test_in_a_view(veth, suite, way, capsys):
    """Not on the loopback device: rdma_cm finds no device for 127.0.0.1, as with the kernel."""
    check(veth, suite, veth.gid_index(4), capsys, f"veth, IPv4, --view={way}", way=way)
