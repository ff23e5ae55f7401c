# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""cmake --install installs all files and no others, and they work from where they are."""
import os
import re
import shutil
import subprocess

import pytest

import harness

PREFIX = "/opt/else where"
LIBRARIES = ["bin/rdma", "libibverbs-real.so.1", "libibverbs.so", "libibverbs.so.1",
             "liburoce-rdmav34.so", "liburoce-view.so", "uroce-broker", "uroce-check",
             "uroce-view"]


def source(name):
    with open(os.path.join(harness.ROOT, name), encoding="utf-8") as file:
        return file.read()


class Installed:
    def __init__(self, scratch):
        self.destination = os.path.join(scratch.path, "destination")
        subprocess.run(["cmake", "--install", harness.BUILD, "--prefix", PREFIX],
                       env={**os.environ, "DESTDIR": self.destination}, check=True,
                       stdout=subprocess.DEVNULL)
        self.root = self.destination + PREFIX
        self.run = os.path.join(self.root, "bin", "uroce-run")

    def files(self):
        return sorted(os.path.relpath(os.path.join(folder, name), self.destination)
                      for folder, _, names in os.walk(self.destination) for name in names)

    def lib_dir(self):
        done = subprocess.run([self.run, "--lib-dir"], stdout=subprocess.PIPE, text=True,
                              check=True)
        return done.stdout.strip()


@pytest.fixture(scope="module", name="installed")
def make_installed(scratch):
    return Installed(scratch)


def test_every_file_has_its_place(installed):
    below = PREFIX[1:] + "/"
    files = installed.files()
    assert all(name.startswith(below) for name in files), files
    names = [name[len(below):] for name in files]
    assert [n[4:] for n in names if n.startswith("bin/")] == \
        sorted(os.listdir(os.path.join(harness.BUILD, "bin")))
    lib = os.path.relpath(installed.lib_dir(), os.path.realpath(installed.root))
    assert [n for n in names if n.startswith("lib")] == \
        sorted([f"{os.path.dirname(lib)}/{n}" for n in ("liburoce.so", "liburoce.so.1")] +
               [f"{lib}/{name}" for name in LIBRARIES])
    assert [n for n in names if n.startswith("include/")] == ["include/infiniband/urocedv.h"]
    pages = os.listdir(os.path.join(harness.ROOT, "Documentation", "man"))
    if shutil.which("rst2man"):
        assert [os.path.basename(n) for n in names if n.startswith("share/man/")] == \
            sorted((p[:-len(".rst")] for p in pages), key=lambda p: (p.rsplit(".")[-1], p))
    assert {n.split("/")[0] for n in names} <= {"bin", "lib", "lib64", "include", "share"}
    for name in "liburoce.so", "liburoce.so.1":
        assert os.path.exists(os.path.join(installed.root, os.path.dirname(lib), name)), name


def test_a_pingpong_runs_from_it(installed, loopback):
    user = harness.NOBODY if os.geteuid() == 0 else None
    for process in harness.start_pair(
            loopback, [installed.run, "ibv_rc_pingpong", "-d", "{device}", "-g", "{gid4}", "-c"],
            user=user, lib="/nowhere"):
        assert "8192000 bytes in" in process.done(), process


def test_uroce_stat_runs_from_it(installed, loopback):
    text = loopback.output_of(os.path.join(installed.root, "bin", "uroce-stat"), lib="/nowhere")
    assert text == "uroce-stat: you have no uroce process running\n"


def test_without_the_systems_library_a_line_tells_what_to_install(installed, scratch):
    copy = os.path.join(scratch.path, "without real")
    shutil.copytree(installed.root, copy, symlinks=True)
    run = os.path.join(copy, "bin", "uroce-run")
    lib = subprocess.run([run, "--lib-dir"], stdout=subprocess.PIPE, text=True, check=True).stdout
    link = os.path.join(lib.strip(), "libibverbs-real.so.1")
    for prepare, part in ((lambda: os.symlink("/nowhere/libibverbs.so.1", link), "libibverbs1"),
                          (lambda: None, "libibverbs1"),
                          (lambda: shutil.rmtree(lib.strip()), "build or install uroce")):
        if os.path.lexists(link):
            os.remove(link)
        prepare()
        done = subprocess.run([run, "ibv_devices"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (127, ""), done
        assert done.stderr.count("\n") == 1 and part in done.stderr, done


def test_the_manual_has_the_limits_of_the_device(loopback):
    told = dict(re.findall(r"^(\w[^\n]*?)  +(\d+)", source("Documentation/man/uroce.7.rst"),
                           re.MULTILINE))
    text = loopback.output_of("ibv_devinfo", "-v", "-d", loopback.device)
    true = {name: value for name, value in re.findall(r"^\s*(\w+):\s+(\d+)$", text, re.MULTILINE)}
    for label, name in (("queue pairs of a device", "max_qp"),
                        ("work requests of a queue", "max_qp_wr"),
                        ("scatter/gather entries", "max_sge"),
                        ("READs, atomics outstanding", "max_qp_rd_atom"),
                        ("completion queues", "max_cq"), ("entries of one", "max_cqe"),
                        ("memory regions", "max_mr"), ("shared receive queues", "max_srq"),
                        ("multicast groups", "max_mcast_grp")):
        assert told[label] == true[name], label


def test_packages_name_one_maintainer():
    """Until there is a real address, the maintainer's one is in .invalid, reserved by RFC 2606."""
    names = {re.search(pattern, source(path), re.MULTILINE)[1] for path, pattern in (
        ("debian/control", r"^Maintainer: (.*>)$"), ("debian/changelog", r"^ -- (.*>)  "),
        ("redhat/uroce.spec", r"^\* \w+ \w+ \d+ \d+ (.*>) - "))}
    assert len(names) == 1, names
    assert re.search(r"^Copyright: \d+ (.*)$", source("debian/copyright"), re.MULTILINE)[1] == \
        names.pop().split(" <")[0]


def test_packages_are_built_with_what_the_build_is():
    """The build dependencies of the package are installed for every build."""
    needed = re.search(r"^Build-Depends:(.*?)\n\n", source("debian/control"),
                       re.MULTILINE | re.DOTALL)[1]
    names = {name.split()[0] for name in needed.split(",")} - {"debhelper-compat"}
    assert names <= set(re.findall(r"^[\w.-]+", source("buildlib/packages/debian"), re.MULTILINE))


def test_32_bits_are_refused_with_the_reason(tmp_path):
    # The compiler's test program would need a libc of 32 bits.
    done = subprocess.run(["cmake", "-G", "Ninja", "-S", harness.ROOT, "-B", tmp_path,
                           "-DCMAKE_C_FLAGS=-m32",
                           "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"],
                          capture_output=True, text=True, check=False)
    if os.uname().machine != "x86_64":
        pytest.skip("this compiler has no -m32")
    assert done.returncode and "uroce needs a processor of 64 bits" in done.stderr, done
