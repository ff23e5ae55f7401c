# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The tarball of buildlib/dist: the same bytes from the same commit, and the commit's files."""
import hashlib
import os
import re
import shutil
import subprocess
import tarfile

import pytest

BUILDLIB = os.path.dirname(os.path.abspath(__file__))
VERSION = "7.8.9"


def run(*command, folder, **environment):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


def git(tree, *words, when="1700000000 +0000"):
    names = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
    done = run("git", *names, *words, folder=tree, GIT_AUTHOR_DATE=when, GIT_COMMITTER_DATE=when)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(name="tree")
def make_tree(tmp_path):
    tree = tmp_path / "tree"
    (tree / "buildlib").mkdir(parents=True)
    shutil.copy(os.path.join(BUILDLIB, "dist"), tree / "buildlib")
    (tree / "CMakeLists.txt").write_text(f"project(uroce VERSION {VERSION} LANGUAGES C)\n")
    (tree / ".gitignore").write_text("/build/\n")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "One")
    return tree


def dist(tree, folder, **environment):
    done = run(str(tree / "buildlib" / "dist"), str(folder), folder="/", **environment)
    assert done.returncode == 0, done.stderr
    path = folder / f"uroce-{VERSION}.tar.gz"
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert done.stdout == f"{found}  {path.name}\n"
    assert os.listdir(folder) == [path.name]
    return found, path, done.stderr


def test_two_runs_make_the_same_bytes(tree, tmp_path):
    first, path, errors = dist(tree, tmp_path / "a")
    assert errors == ""
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    # Another directory, zone, language, mask and times of the files, and settings of the user.
    settings = tmp_path / "settings"
    settings.write_text("[tar]\n\tumask = 0077\n[core]\n\tautocrlf = true\n")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(tree), str(clone))
    os.utime(clone / "CMakeLists.txt", (1, 1))
    mask = os.umask(0o077)
    try:
        second, _, _ = dist(clone, tmp_path / "b", TZ="Asia/Tokyo", LC_ALL="C",
                            GIT_CONFIG_GLOBAL=str(settings))
    finally:
        os.umask(mask)
    assert first == second
    # Attributes of files that depend on the host unless they are set.
    assert {(m.mtime, m.uid, m.gid) for m in members} == {(1700000000, 0, 0)}
    assert {m.mode & 0o777 for m in members} == {0o644, 0o755}


def test_it_has_the_files_of_the_commit(tree, tmp_path):
    listed = git(tree, "ls-tree", "-r", "--name-only", "HEAD").split()
    (tree / "new").write_text("not committed\n")
    (tree / "CMakeLists.txt").write_text("changed\n")
    _, path, errors = dist(tree, tmp_path / "a")
    assert errors == "dist: changes that are not committed are left out\n"
    with tarfile.open(path) as archive:
        names = [m.name for m in archive.getmembers() if m.isfile()]
        text = archive.extractfile(f"uroce-{VERSION}/CMakeLists.txt").read().decode()
    assert names == sorted(f"uroce-{VERSION}/{name}" for name in listed)
    assert VERSION in text


def test_another_commit_makes_other_bytes(tree, tmp_path):
    first, _, _ = dist(tree, tmp_path / "a")
    git(tree, "commit", "-q", "--amend", "-m", "One, later", when="1700000001 +0000")
    assert dist(tree, tmp_path / "b")[0] != first


def test_without_git_it_says_why(tree, tmp_path):
    git(tmp_path, "init", "-q")
    shutil.rmtree(tree / ".git")
    done = run(str(tree / "buildlib" / "dist"), str(tmp_path / "a"), folder="/")
    assert done.returncode == 1 and not os.path.exists(tmp_path / "a")
    assert re.fullmatch(r"dist: .* is not a git work tree: .*\n", done.stderr)
