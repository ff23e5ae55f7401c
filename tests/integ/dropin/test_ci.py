# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""action.yml and buildlib/ci/gitlab.yml, executed as the runners of GitHub and GitLab do.

buildlib/test_ci_files.py checks the form of these files.
"""
import glob
import os
import re
import shutil
import subprocess

import pytest
import yaml

import harness

SETUP = os.path.join(harness.ROOT, "buildlib", "ci", "setup")
EXPRESSION = re.compile(r"\$\{\{ (\S+) \}\}")
DEVINFO = "ibv_devinfo -d uroce_lo"
PINGPONG = """ibv_rc_pingpong -d uroce_lo -g 0 -c -n 300 -p 18710 &
until ss -Hltn 'sport = :18710' | grep -q .; do
	kill -0 $!
	sleep 0.1
done
ibv_rc_pingpong -d uroce_lo -g 0 -c -n 300 -p 18710 127.0.0.1
wait $!
"""


def load(name):
    with open(os.path.join(harness.ROOT, name), encoding="utf-8") as file:
        return yaml.safe_load(file)


class Runner:
    """A job of GitHub: a working directory, and an environment that steps add to."""

    def __init__(self, place, folder):
        self.place, self.folder = place, folder
        self.workspace = folder / "work space"
        self.workspace.mkdir()
        self.environment = {}
        self.files = {name: folder / name for name in ("GITHUB_ENV", "GITHUB_PATH",
                                                       "GITHUB_OUTPUT")}

    def lines(self, name):
        return self.files[name].read_text().splitlines()

    def step(self, text, environment=None):
        """Executes a step as the runner does with "shell: bash"; returns the finished process."""
        for file in self.files.values():
            file.write_text("")
        script = self.folder / "step.sh"
        script.write_text(text)
        variables = {**self.environment, **(environment or {}),
                     **{name: str(path) for name, path in self.files.items()}}
        return self.place.run("env", "-C", self.workspace, "-u", "LD_LIBRARY_PATH",
                              *(f"{name}={value}" for name, value in variables.items()), "bash",
                              "--noprofile", "--norc", "-eo", "pipefail", script)

    def use(self, action, **inputs):
        """Executes the action; returns its outputs, or the process of the step that failed."""
        values = {f"inputs.{name}": str(value.get("default", ""))
                  for name, value in action["inputs"].items()}
        values.update((f"inputs.{name}", value) for name, value in inputs.items())

        def filled(text):
            return EXPRESSION.sub(lambda match: values[match[1]], text)

        for step in action["runs"]["steps"]:
            environment = {name: filled(value) for name, value in step["env"].items()}
            environment["GITHUB_ACTION_PATH"] = harness.ROOT
            process = self.step(filled(step["run"]), environment)
            if process.popen.returncode:
                return process
            for line in self.lines("GITHUB_OUTPUT"):
                name, value = line.split("=", 1)
                values[f"steps.{step['id']}.outputs.{name}"] = value
            self.environment.update(line.split("=", 1) for line in self.lines("GITHUB_ENV"))
            for line in self.lines("GITHUB_PATH"):
                path = self.environment.get("PATH", os.environ["PATH"])
                self.environment["PATH"] = f"{line}:{path}"
        return {name: filled(value["value"]) for name, value in action["outputs"].items()}


@pytest.fixture(name="runner")
def make_runner(loopback, tmp_path):
    return Runner(loopback, tmp_path)


@pytest.fixture(name="prefix")
def make_prefix(scratch):
    """A copy of the build, which has the same files as an installed uroce."""
    return os.path.dirname(scratch.bin)


def succeeded(process):
    assert process.popen.returncode == 0, process
    return process.output


def test_a_step_after_the_action_finds_the_devices(runner, prefix):
    assert runner.step(DEVINFO).popen.returncode != 0
    outputs = runner.use(load("action.yml"), prefix=prefix)
    assert outputs == {"capture": "", "lib-dir": os.path.join(prefix, "lib", "uroce")}
    assert "uroce_lo" in succeeded(runner.step(DEVINFO))
    assert succeeded(runner.step(PINGPONG)).count("2457600 bytes in") == 2
    assert os.path.dirname(succeeded(runner.step("command -v uroce-stat"))) == \
        os.path.join(prefix, "bin")
    # Use the action again, as for other settings: uroce-run is now in PATH.
    before = dict(runner.environment)
    assert runner.use(load("action.yml"), settings="UROCE_LOG=debug\n") == outputs
    assert runner.environment == {**before, "UROCE_LOG": "debug"}


def test_faults_take_effect_and_packets_are_captured(runner, prefix):
    outputs = runner.use(load("action.yml"), prefix=prefix, faults="drop=0.1,seed=3",
                         capture="cap tures/%p.pcapng,snaplen=128",
                         settings="\n  UROCE_LOG=debug\r\n\nUROCE_CREDITS=off\n")
    assert runner.environment.pop("LD_LIBRARY_PATH") == outputs["lib-dir"]
    runner.environment.pop("PATH")
    assert runner.environment == {
        "UROCE_FAULT": "drop=0.1,seed=3", "UROCE_LOG": "debug", "UROCE_CREDITS": "off",
        "UROCE_CAPTURE": f"{runner.workspace}/cap tures/%p.pcapng,snaplen=128"}
    runner.environment["LD_LIBRARY_PATH"] = outputs["lib-dir"]
    assert not glob.glob(outputs["capture"])
    succeeded(runner.step("cd / && " + PINGPONG))
    files = glob.glob(outputs["capture"])
    assert len(files) == 2 and all(os.path.dirname(file) == f"{runner.workspace}/cap tures"
                                   for file in files)
    for file in files:
        with open(file, "rb") as opened:
            assert b"not sent: dropped by fault injection" in opened.read()


@pytest.mark.parametrize("capture, pattern", [
    ("%p.pcapng", "*.pcapng"), ("a/x.%p.pcapng,ring=2x64k", "a/x.*.pcapng"),
    ("a/%p-x.pcapng,snaplen=80,ring=2x64k", "a/*-x*.pcapng"), ("100%%.%p", "100%.*"),
    ("%p,filter=peer:127.0.0.1", "*")])
def test_captured_files_have_the_pattern(runner, prefix, capture, pattern):
    outputs = runner.use(load("action.yml"), prefix=prefix, capture=capture)
    assert outputs["capture"] == f"{runner.workspace}/{pattern}"
    succeeded(runner.step(PINGPONG))
    files = [file for file in (runner.workspace / pattern).parent.iterdir()]
    assert files and {str(file) for file in files} == set(glob.glob(outputs["capture"]))


WRONG = [
    ({"faults": "drop=2"}, "UROCE_FAULT: drop=2"),
    ({"faults": "drop=0.1\nseed=1"}, "UROCE_CI_FAULTS: must be one line: drop=0.1\nseed=1"),
    ({"capture": "x.pcapng"}, "no %p, the process ID, in the file name 'x.pcapng'"),
    ({"capture": "x.%%p"}, "in the file name 'x.%%p'"),
    ({"capture": "-"}, "in the file name '-'"),
    ({"capture": "%p/x.%p"}, "UROCE_CI_CAPTURE: % in the folder's name"),
    ({"capture": "[a]/%p"}, "UROCE_CI_CAPTURE: one of [ ] * ? in "),
    ({"capture": "%p,snaplen=1"}, "UROCE_CAPTURE: snaplen=1"),
    ({"capture": "/dev/null/x/%p"}, "UROCE_CI_CAPTURE: cannot make the folder /dev/null/x"),
    ({"settings": "UROCE_LOG=loud"}, "UROCE_LOG=loud"),
    ({"settings": "UROCE_LOUD=1"}, "UROCE_CI_SETTINGS: there is no setting UROCE_LOUD"),
    ({"settings": "drop=0.1"}, "UROCE_CI_SETTINGS: there is no setting drop"),
    ({"settings": "UROCE_LOG"}, "not of the form NAME=VALUE: UROCE_LOG"),
    ({"settings": "UROCE_LOG=off\nUROCE_LOG=debug"}, "UROCE_LOG is set twice"),
    ({"settings": "UROCE_FAULT=dup=0.1", "faults": "drop=0.1"}, "UROCE_FAULT is set twice"),
    ({"settings": "UROCE_CAPTURE=%p"}, "UROCE_CAPTURE is set by UROCE_CI_CAPTURE"),
    ({"prefix": "/nonexistent"}, "UROCE_CI_PREFIX: no program /nonexistent/bin/uroce-run"),
    ({"package": "a.deb"}, "both UROCE_CI_PACKAGE and UROCE_CI_PREFIX are set"),
    ({"package": "no*.deb", "prefix": ""}, "UROCE_CI_PACKAGE: no such file: no*.deb"),
    ({"package": "*.deb", "prefix": ""}, "UROCE_CI_PACKAGE: more than one file: a.deb b.deb"),
    ({"package": "a.deb", "prefix": ""}, "UROCE_CI_PACKAGE: not the Debian package uroce: a.deb"),
]


@pytest.mark.parametrize("inputs, part", WRONG)
def test_wrong_input_is_refused_with_the_part(runner, prefix, inputs, part):
    for name in "a.deb", "b.deb":
        (runner.workspace / name).write_text("")
    process = runner.use(load("action.yml"), **{"prefix": prefix, **inputs})
    assert process.popen.returncode == 2 and not process.output, process
    assert part in process.errors, process
    assert process.errors.splitlines()[-1].startswith("uroce setup: ") or "\n" in part, process
    assert [file.read_text() for file in runner.files.values()] == ["", "", ""]


def test_wrong_commands_are_refused(loopback):
    for words in ["instal"], ["package"], ["install", "x"], ["package", "a", "b"]:
        process = loopback.run(SETUP, *words)
        assert process.popen.returncode == 2 and process.errors.startswith("usage: "), process


class Job:
    """A job of GitLab that extends .uroce: one shell executes before_script and script."""

    def __init__(self, place, folder):
        self.place, self.folder = place, folder
        self.hidden = load("buildlib/ci/gitlab.yml")[".uroce"]
        self.variables = {**self.hidden["variables"], "UROCE_CI_SOURCE": harness.ROOT}

    def run(self, *script, shell="bash", prefix=()):
        lines = [*self.hidden["before_script"], *script]
        options = ["-eo", "pipefail"] if shell == "bash" else ["-e"]
        return self.place.run(*prefix, "env", "-C", self.folder, "-u", "LD_LIBRARY_PATH",
                              *(f"{name}={value}" for name, value in self.variables.items()),
                              shell, *options, "-c", "\n".join(lines), seconds=120)


@pytest.fixture(name="job")
def make_job(loopback, tmp_path):
    return Job(loopback, tmp_path)


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_job_of_gitlab(job, prefix, shell):
    folder = job.hidden["artifacts"]["paths"][0]
    job.variables.update(UROCE_CI_PREFIX=prefix, UROCE_CI_FAULTS="drop=0.1,seed=3",
                         UROCE_CI_CAPTURE=f"{folder}it's %p.pcapng")
    process = job.run(PINGPONG, "uroce-run --version", "echo $UROCE_FAULT", shell=shell)
    assert succeeded(process).count("2457600 bytes in") == 2
    assert "drop=0.1,seed=3" in process.output
    files = list((job.folder / folder).iterdir())
    assert len(files) == 2
    for file in files:
        assert file.name.startswith("it's ") and \
            b"not sent: dropped by fault injection" in file.read_bytes()


def test_a_job_of_gitlab_ends_with_the_reason(job, prefix):
    job.variables.update(UROCE_CI_PREFIX=prefix, UROCE_CI_FAULTS="drop=2")
    process = job.run("echo continued")
    assert process.popen.returncode == 2 and not process.output, process
    assert "UROCE_FAULT: drop=2" in process.errors
    job.variables["UROCE_CI_SOURCE"] = "nowhere"
    process = job.run("echo continued")
    assert process.popen.returncode and not process.output, process
    assert "UROCE_CI_REPOSITORY: not set, and there is no folder nowhere" in process.errors


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.invalid", *words],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)


def make_tree(folder, files):
    """Makes a git repository with the script and the given files in place of the real ones."""
    for name, text in {"buildlib/ci/setup": None, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            shutil.copy(os.path.join(harness.ROOT, name), path)
        else:
            path.write_text(text)
            path.chmod(0o755)
    git(folder, "init", "-q", "-b", "release")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "One")


def test_a_job_of_gitlab_clones_the_tree(job, prefix, tmp_path):
    make_tree(tmp_path / "origin", {})
    job.variables.update(UROCE_CI_PREFIX=prefix, UROCE_CI_SOURCE="there",
                         UROCE_CI_REPOSITORY=f"file://{tmp_path}/origin", UROCE_CI_REF="release")
    assert "uroce_lo" in succeeded(job.run(DEVINFO))
    assert (job.folder / "there" / "buildlib" / "ci" / "setup").exists()


# Packages that are installed there disappear when the process ends.
CHANGEABLE_SYSTEM = """
mount -t tmpfs tmpfs "$1" && cd "$1" && shift
for name in usr var etc; do
	mkdir $name $name.work
	options=lowerdir=/$name,upperdir=$name,workdir=$name.work
	mount -t overlay -o $options overlay /$name || exit 77
done
exec "$@"
"""


@pytest.fixture(scope="module", name="package")
def make_package(scratch):
    """The build as a Debian package."""
    tree = os.path.join(scratch.path, "package")
    subprocess.run(["cmake", "--install", harness.BUILD, "--prefix", "/usr"], check=True,
                   env={**os.environ, "DESTDIR": tree}, stdout=subprocess.DEVNULL)
    os.mkdir(os.path.join(tree, "DEBIAN"))
    processor = subprocess.run(["dpkg", "--print-architecture"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
    with open(os.path.join(tree, "DEBIAN", "control"), "w", encoding="ascii") as file:
        file.write(f"Package: uroce\nVersion: 1.0\nArchitecture: {processor}Maintainer: a\n"
                   "Depends: libibverbs1\nDescription: a test\n")
    path = os.path.join(scratch.path, "uroce_1.0_test.deb")
    subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, path],
                   check=True, stdout=subprocess.DEVNULL)
    return path


@pytest.fixture(name="system")
def make_system(loopback, tmp_path):
    """The words that start a command which installs packages, see CHANGEABLE_SYSTEM."""
    harness.need_root()
    (tmp_path / "changes").mkdir()
    words = ["unshare", "--mount", "bash", "-c", CHANGEABLE_SYSTEM, "bash", tmp_path / "changes"]
    if loopback.run(*words, "true").popen.returncode:
        pytest.skip("no overlay file systems here")
    return words


INSTALLED = ["dpkg-query -W -f '${db:Status-Abbrev}' uroce", "command -v uroce-run", DEVINFO]


def test_the_package_is_installed(job, package, system):
    job.variables["UROCE_CI_PACKAGE"] = package.replace("1.0", "*")
    text = succeeded(job.run(*INSTALLED, prefix=system))
    assert text.startswith("ii ") and "/usr/bin/uroce-run" in text and "uroce_lo" in text
    # Other processes do not see the installed package.
    assert job.place.run("dpkg-query", "-W", "uroce").popen.returncode


def test_the_package_is_built_if_there_is_none(job, package, system, tmp_path):
    """apt-get gets the request for the build dependencies in debian/control; the package script of
    the tree builds the package."""
    make_tree(tmp_path / "tree", {
        "buildlib/package": f'#!/bin/sh\n[ "$2" = deb ] && mkdir "$1" && cp {package} "$1"\n',
        "bin/apt-get": '#!/bin/sh\ncase " $* " in *" build-dep "*) echo "$@" >&2 ;; '
                       '*) exec /usr/bin/apt-get "$@" ;; esac\n'})
    job.variables.update(UROCE_CI_SOURCE=tmp_path / "tree",
                         PATH=f"{tmp_path}/tree/bin:{os.environ['PATH']}")
    process = job.run(*INSTALLED, prefix=system)
    text = succeeded(process)
    assert text.startswith("ii ") and "/usr/bin/uroce-run" in text and "uroce_lo" in text
    assert f"build-dep {tmp_path}/tree/\n" in process.errors


def test_who_is_not_root_installs_by_sudo(loopback, package, tmp_path_factory, scratch):
    tree = tmp_path_factory.mktemp("tree")
    make_tree(tree, {"bin/sudo": '#!/bin/sh\necho "sudo $*" >&2\n'})
    # Where every user can read it.
    readable = os.path.join(scratch.path, "tree")
    shutil.copytree(tree, readable)
    os.chmod(readable, 0o755)
    process = loopback.run(os.path.join(readable, "buildlib/ci/setup"), "install",
                           user=harness.NOBODY if os.geteuid() == 0 else None,
                           env={"UROCE_CI_PACKAGE": package, "PATH": f"{readable}/bin:/usr/bin"})
    line = (r"^sudo env DEBIAN_FRONTEND=noninteractive apt-get .* install "
            rf"{re.escape(package)}\nuroce setup: uroce is installed, but ")
    assert process.popen.returncode == 2 and re.search(line, process.errors, re.MULTILINE), process
