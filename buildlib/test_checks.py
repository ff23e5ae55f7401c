# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A check that cannot fail proves nothing: each is shown what it must find, in its own tree."""
import os
import re
import shutil
import subprocess

import pytest

BUILDLIB = os.path.dirname(os.path.abspath(__file__))
LICENCE = "/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */\n"
RULES = "# The rules\n\n### C1 one\nMore of it.\n\n### C2 two\n"


class Tree:
    def __init__(self, root):
        self.root = root
        (root / "buildlib").mkdir()
        for name in ("sources.py", "layers.py", "check-style", "check-format", "check-prose",
                     "check-layers", "check-documents", "check-man", "check-corpora",
                     "check-commits", "check-version", "check-symbols", "spec-report"):
            shutil.copy(os.path.join(BUILDLIB, name), root / "buildlib")
        shutil.copy(os.path.join(BUILDLIB, "..", ".clang-format"), root)
        self.write("Documentation/rules.md", RULES)
        self.write_exceptions("")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write_exceptions(self, parameters, booleans=""):
        self.write("buildlib/style_exceptions.py", f"# {LICENCE}"
                   f"PARAMETERS = {{'a reason': {{{parameters}}}}}\n"
                   f"BOOLEANS = {{'a reason': {{{booleans}}}}}\n")

    def check(self, name, *arguments):
        command = ["/usr/bin/python3", "-B", str(self.root / "buildlib" / name), *arguments]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, check=False)
        return result.returncode, result.stdout

    def archive(self, name, text):
        self.write(f"{name}.c", text)
        for command in (["gcc", "-fPIC", "-O2", "-c", f"{name}.c"],
                        ["ar", "rcs", f"lib{name}.a", f"{name}.o"]):
            subprocess.run(command, cwd=self.root, check=True)
        return str(self.root / f"lib{name}.a")


@pytest.fixture(name="tree")
def make_tree(tmp_path):
    return Tree(tmp_path)


def function_of(lines):
    return "int f(void)\n{\n" + "\t;\n" * (lines - 4) + "\treturn 0;\n}\n"


def test_clean_tree_passes(tree):
    tree.write("providers/uroce/wire/a.c", LICENCE + function_of(70))
    for check in ("check-style", "check-layers"):
        code, output = tree.check(check)
        assert code == 0, output


@pytest.mark.parametrize("text, complaint", [
    (function_of(10), "no line 'SPDX"),
    (LICENCE + function_of(72), "f() of 72 lines"),
    (LICENCE + "\n" * 600, "file of 601 lines"),
    (LICENCE + "\t" * 12 + "int a;\n", "102 columns"),
    (LICENCE + "int a; \n", "white space"),
    (LICENCE + "\tassert_in_range(a, 1, 2);\n", "calls it assert_uint_in_range()"),
    (LICENCE + "\tfor (assert_null(a); b; c)\n", "no expression"),
    (LICENCE + "\t(a = 0, assert_null(b));\n", "no expression"),
])
def test_style_complains(tree, text, complaint):
    tree.write("providers/uroce/wire/a.c", text)
    code, output = tree.check("check-style")
    assert code == 1 and complaint in output


PARAMETERS = [
    ("int f(int a, int b, int c, int d, int (*e)(int, int))", None),
    ("int f(int a, int b, int c, int d, int (*e)(int, int), int f[2])", 6),
    ("static __attribute__((noinline)) int\nf(int a, int b, int c, int d, int e,\n  int f)", 6),
]
BOOLEANS = [
    ("bool a, b, c, d; bool (*e)(bool f); bool *g(bool h);", None),
    ("bool a, b, c, d; struct { bool a; } e;", None),
    ("bool a, b; atomic_bool c; _Atomic bool d; bool e[2];", 5),
]


@pytest.mark.parametrize("function, parameters", PARAMETERS)
def test_parameters_are_few(tree, function, parameters):
    tree.write("tests/a.c", f"{LICENCE}{function}\n{{\n}}\n")
    code, output = tree.check("check-style")
    assert code == (1 if parameters else 0), output
    assert not parameters or f"tests/a.c: f has {parameters} parameters, at most 5" in output
    tree.write_exceptions("'tests/a.c': 'f'")
    code, output = tree.check("check-style")
    assert code == (0 if parameters else 1), output
    assert parameters or "f of tests/a.c has no more than 5 parameters" in output


@pytest.mark.parametrize("members, booleans", BOOLEANS)
def test_booleans_are_few(tree, members, booleans):
    tree.write("tests/a.h", f"{LICENCE}struct s {{\n{members}\n}};\n")
    code, output = tree.check("check-style")
    assert code == (1 if booleans else 0), output
    assert not booleans or f"tests/a.h: s has {booleans} booleans, at most 4" in output
    tree.write_exceptions("", "'tests/a.h': 's'")
    code, output = tree.check("check-style")
    assert code == (0 if booleans else 1), output
    assert booleans or "s of tests/a.h has no more than 4 booleans" in output


def test_exceptions_of_a_file_that_is_gone_are_found(tree):
    tree.write_exceptions("'gone.c': 'f g'")
    code, output = tree.check("check-style")
    assert code == 1 and output.count("of gone.c has no more than 5 parameters") == 2


@pytest.mark.parametrize("comment, words", [
    ("/* What the peer needs. */", "'What'"),
    ("/*\n * So long an ACK waits\n * for data.\n */", "'So long'"),
    ("/* Is the packet undamaged? */", "'Is the packet undamaged?'"),
    ("/* Poll again; the last poll was in vain. */", "'in vain'"),
    ("int a; // the peer is told", "'told'"),
    ("int a; /* a folder of sysfs */", "'folder'"),
])
def test_prose_complains(tree, comment, words):
    tree.write("providers/uroce/engine/a.c", f'{LICENCE}char *b = "/* So long */";\n{comment}\n')
    code, output = tree.check("check-prose")
    assert code == 1 and words in output and output.count("a.c:3:") == 1
    tree.write("providers/uroce/engine/a.c", LICENCE + "/* Returns true if the QP sends. */\n")
    assert tree.check("check-prose")[0] == 0


@pytest.mark.parametrize("text, line, words", [
    ('"""What the peer needs."""', 2, "'What'"),
    ('B = "# So long"\ndef c():\n    """Is the packet\n    undamaged?"""', 4,
     "'Is the packet undamaged?'"),
    ("# Polls again; the last poll was in\n# vain.", 2, "'in vain'"),
    ("B = 1  # the peer is told", 2, "'told'"),
])
@pytest.mark.parametrize("name, head", [("tests/a.py", "\n"),
                                        ("tests/a", "#!/usr/bin/python3\n")])
def test_prose_of_python_complains(tree, name, head, text, line, words):
    tree.write(name, f"{head}{text}\n")
    code, output = tree.check("check-prose")
    assert code == 1 and words in output and output.count(f"{name}:{line}:") == 1, output
    tree.write(name, f'{head}"""Returns true if the QP sends."""\nB = "What is told"\n')
    assert tree.check("check-prose")[0] == 0


@pytest.mark.parametrize("message, complaint", [
    ("Keep the MSN of a stale response", None),
    ("Keep the MSN\n\nFixes: 0123abcd (\"Count requests\")", None),
    ("Keep " + "a" * 68, "73 columns"),
    ("Keep the MSN.", "full stop"),
    ("keep the MSN", "capital letter"),
    ("engine: Keep the MSN", "capital letter"),
    ("Keeps the MSN", "imperative"),
    ("Kept the MSN", "imperative"),
    ("Keeping the MSN", "imperative"),
    ("Keep the MSN\nand the PSN", "empty line"),
    ("Keep the MSN\n\nFixes: the MSN", "Fixes: HASH"),
])
def test_commits_complain(tree, message, complaint):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tree.root)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    base = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True,
                          text=True).stdout.strip()
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], check=True)
    code, output = tree.check("check-commits", base)
    if complaint:
        assert code == 1 and complaint in output
    else:
        assert code == 0, output


def test_names_of_cmocka(tree):
    function = LICENCE + "static void stop(int a)\n"
    tree.write("providers/uroce/capture/a.c", function)
    assert tree.check("check-style")[0] == 0
    tree.write("tests/unit/a.c", function)
    code, output = tree.check("check-style")
    assert code == 1 and "tests/unit/a.c:2: stop() is a macro" in output


def test_programs_of_the_package_run_with_both_cmocka(tree):
    text = LICENCE + "\tassert_uint_in_range(a, 1, 2);\n"
    tree.write("tests/unit/a.c", text)
    assert tree.check("check-style")[0] == 0
    tree.write("tests/integ/process/a.c", text)
    code, output = tree.check("check-style")
    assert code == 1 and "tests/integ/process/a.c:2: not in both cmocka" in output


def test_scripts_need_a_licence_line(tree):
    tree.write("tools/run", "#!/bin/sh\ntrue\n")
    code, output = tree.check("check-style")
    assert code == 1 and "tools/run:1: no line" in output


def test_format_complains(tree):
    tree.write("a.c", LICENCE + "int  a;\n")
    code, output = tree.check("check-format")
    assert code == 77 or (code != 0 and "clang-format" in output)


@pytest.mark.parametrize("name, line", [
    ("wire/a.c", '#include "engine/engine.h"'),
    ("wire/a.c", "#include <stdio.h>"),
    ("engine/a.c", '#include "link/link.h"'),
    ("engine/a.c", "#include <time.h>"),
    ("engine/a.c", "#include <infiniband/verbs.h>"),
    ("link/a.c", '#include "wire/opcode.h"'),
    ("link/a.c", '#include "wire/packet.h"\nint a = wire_parse;'),
    ("link/a.c", "#include <infiniband/verbs.h>"),
    ("progress/a.c", '#include "verbs/uroce.h"'),
    ("progress/a.c", '#  include "../verbs/uroce.h"'),
    ("verbs/a.c", '#include "tools/stat.h"'),
    ("other/a.c", '#include "wire/packet.h"'),
])
def test_layers_complain(tree, name, line):
    tree.write(f"providers/uroce/{name}", f"{LICENCE}{line}\n")
    code, output = tree.check("check-layers")
    assert code == 1 and f"providers/uroce/{name}:2:" in output


@pytest.mark.parametrize("name, line", [
    ("wire/a.c", '#include "opcode.h"\n#include <stdint.h>'),
    ("engine/a.c", '#include "wire/packet.h"\n#include "psn.h"'),
    ("link/a.c", '#include "wire/packet.h"\nint a = WIRE_UDP_PORT;'),
    ("link/a.c", "#include <rdma/uroce-abi.h>\n#include <sys/socket.h>"),
    ("progress/a.c", '#include "engine/engine.h"\n#include "link/link.h"'),
    ("verbs/a.c", '#include "progress/progress.h"\n#include <infiniband/verbs.h>'),
    ("verbs/qp/post.c", '#include "qp.h"\n#include "verbs/mr/pd.h"\n#include "verbs/abi/ops.h"'),
    ("tools/a.c", '#include "verbs/uroce.h"'),
])
def test_layers_allow(tree, name, line):
    tree.write(f"providers/uroce/{name}", f"{LICENCE}{line}\n")
    code, output = tree.check("check-layers")
    assert code == 0, output


@pytest.mark.parametrize("name, line, complaint", [
    ("engine/tx/requester.c", '#include "tx_sched.h"', "of 'when beside states' above it"),
    ("engine/recovery/loss.c", '#include "engine/qp_transition.h"',
     "of 'when beside states' above it"),
    ("engine/cc/cwnd.c", '#include "requester.h"', "above it"),
    ("engine/tx/requester.c", '#include "completer.h"', "do not include each other"),
    ("verbs/mr/pd.c", '#include "verbs/qp/qp.h"', "of 'qp' above it"),
    ("verbs/mr/pd.c", '#include "../stats/stats.h"', "of 'contexts and devices' above it"),
    ("verbs/abi/ops.h", '#include "verbs/mr/pd.h"', "of 'memory' above it"),
    ("link/shm/channel.c", '#include "unheard_of.h"', "above it"),
])
def test_the_direction_inside_of_a_layer(tree, name, line, complaint):
    tree.write(f"providers/uroce/{name}", f"{LICENCE}{line}\n")
    code, output = tree.check("check-layers")
    assert code == 1 and f"providers/uroce/{name}:2:" in output and complaint in output, output


def test_the_page_shows_the_table(tree):
    marks = "<!-- layers: begin -->\n<!-- layers: end -->\n"
    tree.write("Documentation/architecture.md", f"# Layers\n\n{marks}\nMore.\n")
    code, output = tree.check("check-layers")
    assert code == 1 and "does not show the table" in output
    assert tree.check("check-layers", "--write")[0] == 0
    assert tree.check("check-layers")[0] == 0
    page = (tree.root / "Documentation/architecture.md").read_text()
    assert page.startswith("# Layers") and page.endswith("More.\n") and "verbs" in page
    tree.write("Documentation/architecture.md", page.replace("verbs", "verbs2", 1))
    assert tree.check("check-layers")[0] == 1
    tree.write("Documentation/architecture.md", "# No marks\n")
    code, output = tree.check("check-layers")
    assert code == 1 and "are missing" in output


def test_documents_name_what_exists(tree):
    tree.write("providers/uroce/engine/a.c", "static bool is_it(int a,\n\t\t  int b)\n{\n}\n")
    tree.write("Documentation/a.md", "[a](../providers/uroce/engine/a.c) [b](https://b.c/d)\n"
               "| `engine/a.c` | `is_it` | asks, by `is_it()` |\n")
    code, output = tree.check("check-documents")
    assert code == 0, output
    tree.write("Documentation/a.md", "[a](gone.md)\n| `engine/a.c` | `was_it` | asks |\n"
               "| `engine/b.c` | `is_it` | asks |\n"
               "| `engine/a.c` | `is_it` | asks, by `gone()` |\n")
    code, output = tree.check("check-documents")
    assert code == 1 and "no Documentation/gone.md" in output
    assert "a.c has no function was_it()" in output and "no providers/uroce/engine/b.c" in output
    assert output.count("there is no function gone()") == 1


def test_documents_name_tests_that_exist(tree):
    tree.write("tests/test_a.py", "def test_one(): pass\n\n\ndef test_two(): pass\n")
    tree.write("Documentation/a.md", "| [a](../tests/test_a.py) `test_one`, `test_two`, b |\n")
    code, output = tree.check("check-documents")
    assert code == 0, output
    tree.write("Documentation/a.md", "| [a](../tests/test_a.py) `test_one`, `test_three` |\n")
    code, output = tree.check("check-documents")
    assert code == 1 and "Documentation/a.md:1: tests/test_a.py has no test_three\n" in output


def test_versions_agree(tree):
    places = {"CMakeLists.txt": "project(uroce VERSION {} LANGUAGES C)\n",
              "debian/changelog": "uroce ({}) unstable;\n\nuroce (0.9.9) unstable;\n",
              "NEWS.md": "# News\n\n## {}, 2026-11-28\n\n## 0.9.9, 2026-11-01\n",
              "redhat/uroce.spec": "Version:        {}\n\n%changelog\n"
                                   "* Sat Nov 28 2026 a <a@b.invalid> - {}-1\n- Text.\n",
              "uroce-stat": "#!/bin/sh\necho uroce-stat {}\n"}

    def check(different=None):
        for name, text in places.items():
            tree.write(name, text.replace("{}", "1.2.4" if name == different else "1.2.3"))
        program = tree.root / "uroce-stat"
        program.chmod(0o755)
        return tree.check("check-version", str(program))

    assert check()[0] == 0, check()[1]
    for name, count in zip(places, (5, 1, 1, 2, 1)):
        code, output = check(name)
        assert code == 1 and f"{count} complaints" in output, output
    tree.write("CMakeLists.txt", "project(uroce VERSION 1.2 LANGUAGES C)\n")
    code, output = tree.check("check-version")
    assert code == 1 and "no version of three numbers" in output


def build_library(tree, symbols, soname="libnew.so.1"):
    tree.write("lib/new.c", "".join(f"int {symbol};\n" for symbol in symbols))
    tree.write("lib/new.map", f"NEW_1.0 {{ global: {'; '.join(symbols)}; local: *; }};\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "new.c", "-o", "libnew.so", f"-Wl,-soname,{soname}",
                    "-Wl,--version-script=new.map"], cwd=tree.root / "lib", check=True)


def test_exported_symbols_are_listed(tree):
    folder = str(tree.root / "lib")
    (tree.root / "tests/golden/symbols").mkdir(parents=True)
    build_library(tree, ["first", "second"])
    assert tree.check("check-symbols", folder)[0] == 1
    assert tree.check("check-symbols", "--write", folder)[0] == 0
    assert tree.check("check-symbols", folder)[0] == 0
    for symbols, soname, complaints in (
            (["first"], "libnew.so.1", ["second@@NEW_1.0 has disappeared"]),
            (["first", "second", "third"], "libnew.so.1", ["third@@NEW_1.0 is not in"]),
            (["first", "second"], "libnew.so.2", ["SONAME libnew.so.1 has disappeared",
                                                  "SONAME libnew.so.2 is not in"])):
        build_library(tree, symbols, soname)
        code, said = tree.check("check-symbols", folder)
        assert code == 1 and f"buildlib/check-symbols --write {folder}\n" in said
        lines = [line for line in said.splitlines() if line.startswith("libnew.so: ")]
        assert len(lines) == len(complaints)
        for line, complaint in zip(lines, complaints):
            assert complaint in line
    (tree.root / "lib/libnew.so").unlink()
    code, said = tree.check("check-symbols", folder)
    assert code == 1 and "no shared library" in said and "libnew.so: has a list" in said


def test_comments_name_what_exists(tree):
    tree.write("providers/uroce/engine/b.h", LICENCE)
    tree.write("providers/uroce/engine/a.c", "/* b.h, engine/b.h, <linux/if.h>, test_NAME.c\n"
               " * (providers/uroce/engine/b.h), a.b.c.d: rxe_comp.c */ int a; // b.h\n"
               "#include \"c.h\"\n")
    code, output = tree.check("check-documents")
    assert code == 0, output
    tree.write("providers/uroce/engine/a.c", "/*\n * As in c.h.\n */\n"
               "int a; /* wire/b.h */ // gone.py\n")
    code, output = tree.check("check-documents")
    assert code == 1 and output.count("there is no") == 3
    for line, name in ((2, "c.h"), (4, "wire/b.h"), (4, "gone.py")):
        assert f"providers/uroce/engine/a.c:{line}: there is no {name}\n" in output


def test_pure_layers_call_nothing_outside(tree):
    wire = tree.archive("wire", "int wire_a(void);\nint wire_a(void) { return 1; }\n")
    pure = tree.archive("pure", "int wire_a(void);\nint f(void);\n"
                        "int f(void) { return wire_a(); }\n")
    code, output = tree.check("check-layers", f"wire={wire}", f"engine={pure}")
    assert code == 0, output
    clock = tree.archive("clock", "long time(long *);\nlong f(void);\n"
                         "long f(void) { return time(0); }\n")
    code, output = tree.check("check-layers", f"wire={wire}", f"engine={clock}")
    assert code == 1 and "may not call time" in output
    code, output = tree.check("check-layers", f"wire={clock}")
    assert code == 1 and "may not call time" in output


def test_no_group_calls_one_above_it(tree):
    def wire(*names):
        for name in names:
            tree.write(f"providers/uroce/wire/{name}.c", LICENCE)
        subprocess.run(["ar", "rcs", "libwire.a", *(f"{n}.o" for n in names)], cwd=tree.root,
                       check=True)
        return tree.check("check-layers", f"wire={tree.root}/libwire.a")

    tree.archive("bytes", "int a(void);\nint a(void) { return 1; }\n")
    tree.archive("icrc", "int a(void);\nint b(void);\nint b(void) { return a(); }\n")
    code, output = wire("bytes", "icrc")
    assert code == 0, output
    tree.archive("bytes", "int a(void);\nint b(void);\nint a(void) { return b(); }\n")
    code, output = wire("bytes", "icrc")
    assert code == 1 and "wire/bytes.c: 'bytes' may not use b of 'packets' above it" in output


def test_files_do_not_call_each_other_in_a_circle(tree):
    def broker(ports):
        tree.archive("ports", ports)
        subprocess.run(["ar", "rcs", "libbroker.a", "slots.o", "names.o", "ports.o"],
                       cwd=tree.root, check=True)
        return tree.check("check-layers", f"broker={tree.root}/libbroker.a")

    for name in ("slots", "names", "ports"):
        tree.write(f"providers/uroce/broker/{name}.c", LICENCE)
    tree.archive("slots", "int a(void);\nint b(void);\nint a(void) { return b(); }\n")
    tree.archive("names", "int b(void);\nint c(void);\nint b(void) { return c(); }\n")
    code, output = broker("int c(void);\nint c(void) { return 1; }\n")
    assert code == 0, output
    code, output = broker("int a(void);\nint c(void);\nint c(void) { return a(); }\n")
    assert code == 1 and "broker: calls in a circle: providers/uroce/broker/names.c, " \
        "providers/uroce/broker/ports.c, providers/uroce/broker/slots.c" in output


def test_calls_upwards_that_are_gone_are_found(tree):
    archive = tree.archive("demux", "int f(void);\nint f(void) { return 1; }\n")
    tree.write("providers/uroce/progress/rx/demux.c", LICENCE)
    code, output = tree.check("check-layers", f"progress={archive}")
    assert code == 1 and "demux of progress does not call gsi_rxq upwards any more" in output


def test_rules_need_a_test_or_a_reason(tree):
    code, output = tree.check("spec-report")
    assert code == 1 and "rule C1 has neither" in output and "rule C2 has neither" in output
    tree.write("providers/uroce/engine/a.c",
               "/* rule C1 */\n/* see rule C2 exception: absent */\n")
    code, output = tree.check("spec-report")
    assert code == 1 and "rule C1 has neither" in output and "rule C2 has" not in output
    tree.write("tests/unit/test_a.c", "/* rule C1 test */\n")
    code, output = tree.check("spec-report")
    assert code == 0 and "test:      tests/unit/test_a.c:1" in output, output


MANUAL = {
    "Documentation/man/uroce.7.rst": "ENVIRONMENT\n===========\n\nUROCE_A\n    One.\n",
    "Documentation/man/a.1.rst": "OPTIONS\n=======\n\n``-h, --help``\n    This.\n\nB\n=\n",
    "Documentation/man/a.3.rst": "SYNOPSIS\n========\n\n::\n\n    void urocedv_a(int);\n",
    "README.md": "| `UROCE_A` | one |\n",
    "providers/uroce/infiniband/urocedv.h": "void urocedv_a(int a);\n",
    "providers/uroce/verbs/settings_check.c": 'settings[] = {\n\t"UROCE_A",\n};\n"UROCE_TEST_";\n',
    "bin/a": "#!/bin/sh\necho ' -h, --help: well-known'\n",
}


@pytest.mark.parametrize("name, old, new, complaint", [
    ("README.md", "", "", None),
    ("bin/a", "-h,", "-x, -h,", "says nothing of option -x"),
    ("bin/a", "echo", "exit 1\necho", "exit code 1"),
    ("bin/b", "", "#!/bin/sh\n", "b has no page"),
    ("Documentation/man/a.1.rst", "-h,", "-h, --all,", "there is no option --all"),
    ("Documentation/man/uroce.7.rst", "UROCE_A", "UROCE_B", "says nothing of variable UROCE_A"),
    ("README.md", "UROCE_A", "UROCE_B", "README.md: there is no variable UROCE_B"),
    ("Documentation/man/a.3.rst", "_a(", "_b(", "says nothing of function urocedv_a"),
])
def test_what_the_manual_does_not_say_is_found(tree, name, old, new, complaint):
    for path, text in {"bin/b": "", **MANUAL}.items():
        text = text.replace(old, new) if path == name else text
        if text:
            tree.write(path, text)
        if path.startswith("bin/") and text:
            (tree.root / path).chmod(0o755)
    code, output = tree.check("check-man", str(tree.root / "bin"))
    if complaint:
        assert code == 1 and complaint in output, output
    else:
        assert code == 0, output


def test_rules_share_a_citation(tree):
    tree.write("tests/unit/test_a.c", "/*\n * A sentence citing rules C1 and\n * C2 test\n */\n")
    code, output = tree.check("spec-report")
    assert code == 0, output


@pytest.mark.parametrize("cited", ["C1-C3", "C1 to C3", "C1\n * to C3", "C1-C2 and C3"])
def test_a_range_cites_what_is_inside_of_it(tree, cited):
    tree.write("Documentation/rules.md", RULES + "\n### C3 three\n")
    tree.write("tests/unit/test_a.c", f"/* rules {cited} test */\n")
    code, output = tree.check("spec-report")
    assert code == 0 and output.count("tests/unit/test_a.c:1") == 3, output


@pytest.mark.parametrize("cited", ["C1-C3", "C2-C1", "C1-S2"])
def test_a_range_of_unknown_rules_is_found(tree, cited):
    tree.write("tests/unit/test_a.c", f"/* rules C1 and C2 test, rules {cited} */\n")
    code, output = tree.check("spec-report")
    assert code == 1 and "there is no rule" in output


def test_citations_of_unknown_rules_are_found(tree):
    tree.write("tests/unit/test_a.c", "/* rules C1, C2 and C3 test */\n")
    code, output = tree.check("spec-report")
    assert code == 1 and "there is no rule C3" in output


def test_a_test_citation_outside_tests_is_found(tree):
    tree.write("providers/uroce/wire/a.c", "/* rules C1 and C2 test */\n")
    assert tree.check("spec-report")[0] == 1


def test_what_the_host_cannot_is_skipped():
    """build.sh sets a variable that with-network reads: both must use the same name."""
    with open(os.path.join(BUILDLIB, "..", "build.sh"), encoding="utf-8") as file:
        variable = re.search(r"export (\w+)=\$cannot$", file.read(), re.MULTILINE)[1]
    command = [os.path.join(BUILDLIB, "with-network"), "false"]
    result = subprocess.run(command, env={**os.environ, variable: "fly"}, stdout=subprocess.PIPE,
                            text=True, check=False)
    assert result.returncode == 77 and result.stdout == "skipped: this host cannot fly\n"


def test_corpora(tree):
    tree.write("tests/fuzz/make_a_corpus.py", "import os, pathlib\n"
               "folder = pathlib.Path(os.environ['UROCE_CORPUS']) / 'a'\n"
               "folder.mkdir()\n"
               "(folder / 'same').write_text('1')\n"
               "(folder / 'other').write_text('2')\n"
               "(folder / 'none').write_text('3')\n")
    tree.write("tests/fuzz/corpus/a/same", "1")
    tree.write("tests/fuzz/corpus/a/found_by_the_fuzzer", "4")
    tree.write("tests/fuzz/corpus/a/other", "1")
    code, output = tree.check("check-corpora")
    assert code == 1
    assert "a/other: is not what its script makes" in output
    assert "a/none: is missing" in output
    tree.write("tests/fuzz/corpus/a/other", "2")
    tree.write("tests/fuzz/corpus/a/none", "3")
    code, output = tree.check("check-corpora")
    assert code == 0, output


def test_failed_tests_of_a_log(tmp_path):
    """ctest itself writes the log, so that another version's format is noticed."""
    for folder in ("outer", "inner"):
        (tmp_path / folder).mkdir()
    (tmp_path / "inner" / "CTestTestfile.cmake").write_text(
        'add_test(verbs.passes "true")\n'
        'add_test(verbs.leaks "sh" "-c" "echo ==7==ERROR: LeakSanitizer: leaks; exit 1")\n')
    (tmp_path / "outer" / "CTestTestfile.cmake").write_text(
        f'add_test(sanitize.asan "ctest" "--test-dir" "{tmp_path}/inner" "--output-on-failure")\n'
        'add_test(unit.quiet "sh" "-c" "echo nothing known; exit 3")\n'
        'add_test(unit.cmocka "sh" "-c" "echo a.c:7: error: Failure!; echo noise; exit 1")\n')
    log = tmp_path / "log"
    with open(log, "w", encoding="utf-8") as out:
        subprocess.run(["ctest", "--test-dir", str(tmp_path / "outer"), "--output-on-failure"],
                       stdout=out, stderr=out, check=False)
    shown = subprocess.run(["/usr/bin/python3", "-B", os.path.join(BUILDLIB, "failed-tests"), log],
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    assert re.findall(r"^FAILED (\S+):", shown, re.M) == [
        "sanitize.asan", "verbs.leaks", "unit.quiet", "unit.cmocka"]
    assert "==7==ERROR: LeakSanitizer: leaks" in shown
    assert f"--test-dir {tmp_path}/inner --output-on-failure -R '^verbs.leaks$'" in shown
    assert f"--test-dir {tmp_path}/outer --output-on-failure -R '^unit.cmocka$'" in shown
    assert "    nothing known" in shown
    assert "a.c:7: error: Failure!" in shown and "noise" not in shown
