# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Lists and reads the files of the tree for the checks."""
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIPPED_FOLDERS = {".git", "__pycache__", ".pytest_cache", ".cache"}
C_ENDINGS = (".c", ".h", ".cc")
# Comments of C, and strings, so that nothing in a string is taken for a comment.
COMMENT_OR_STRING = re.compile(r"/\*.*?\*/|//[^\n]*|"
                               r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
SOURCE_ENDINGS = C_ENDINGS + (".py", ".sh", ".cmake", ".map")
SOURCE_NAMES = {"CMakeLists.txt", ".clang-format", ".gitignore"}


def _from_git():
    """Returns tracked and new files without those in .gitignore, or None outside of a git tree."""
    command = ["git", "-C", ROOT, "-c", f"safe.directory={ROOT}",
               "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in os.fsdecode(listing).split("\0") if name]


def _from_folders():
    for folder, below, names in os.walk(ROOT):
        at_root = folder == ROOT
        below[:] = [b for b in below if b not in SKIPPED_FOLDERS and
                    not (at_root and (b == "build" or b.startswith("build-")))]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def all_files():
    """Returns the paths of all files, relative to ROOT and sorted."""
    names = _from_git()
    if names is None:
        names = _from_folders()
    return sorted({n for n in names if os.path.isfile(os.path.join(ROOT, n)) and
                   not os.path.islink(os.path.join(ROOT, n))})


def is_script(name):
    with open(os.path.join(ROOT, name), "rb") as file:
        return file.read(2) == b"#!"


def source_files():
    """Returns C, Python, shell and CMake files, and all scripts that start with #!."""
    return [n for n in all_files() if n.endswith(SOURCE_ENDINGS) or
            os.path.basename(n) in SOURCE_NAMES or is_script(n)]


def c_files():
    return [n for n in all_files() if n.endswith(C_ENDINGS)]


def python_files():
    """Returns Python modules, and scripts that Python runs."""
    return [n for n in source_files()
            if n.endswith(".py") or is_script(n) and "python" in read(n).split("\n", 1)[0]]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def verdict(what, complaints):
    """Prints the complaints, one per line, and returns the exit code."""
    for complaint in complaints:
        print(complaint)
    print(f"{what}: " + (f"{len(complaints)} complaints" if complaints else "nothing to complain"))
    return 1 if complaints else 0


def comments(text):
    """Returns a match for each comment in the text of a C file."""
    return (match for match in COMMENT_OR_STRING.finditer(text) if match.group().startswith("/"))
