# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The form of action.yml, buildlib/ci/gitlab.yml and the Containerfile, and the shell code in them.

tests/integ/dropin/test_ci.py executes the first two; an image is built only by hand.
"""
import glob
import os
import re
import shlex
import subprocess

import pytest
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SETUP = "buildlib/ci/setup"
RECIPE = "Documentation/recipes/ci.md"
# From GitHub's page on the metadata of actions, and GitLab's on keywords of .gitlab-ci.yml.
ACTION_KEYS = {"name", "author", "description", "inputs", "outputs", "runs", "branding"}
STEP_KEYS = {"run", "shell", "if", "name", "id", "env", "working-directory", "uses", "with",
             "continue-on-error"}
JOB_KEYS = {"after_script", "allow_failure", "artifacts", "before_script", "cache", "extends",
            "image", "needs", "parallel", "rules", "script", "services", "stage", "tags",
            "timeout", "variables"}
ARTIFACTS_KEYS = {"access", "exclude", "expire_in", "expose_as", "name", "paths", "public",
                  "reports", "untracked", "when"}
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
INSTRUCTIONS = {"FROM", "COPY", "RUN", "ENV", "ENTRYPOINT"}


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def load(name):
    return yaml.safe_load(read(name))


def shellcheck(text, shell="bash"):
    done = subprocess.run(["shellcheck", f"--shell={shell}", "-"], input=text, text=True,
                          stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stdout


def variables_of_setup():
    """The variables that the script describes, which are those that it reads."""
    text = read(SETUP)
    described = set(re.findall(r"^#   (UROCE_CI_\w+)  ", text, re.MULTILINE))
    assert described == set(re.findall(r"UROCE_CI_\w+", text))
    return described


def test_shellcheck_has_no_complaint():
    shellcheck(read(SETUP))


def test_the_script_knows_the_settings():
    table = re.search(r"\bsettings\[\] = \{(.*?)\}",
                      read("providers/uroce/verbs/settings_check.c"), re.DOTALL)[1]
    known = re.search(r"^known_settings=\((.*?)\)", read(SETUP), re.MULTILINE | re.DOTALL)[1]
    assert sorted(known.split()) == sorted(re.findall(r'"(\w+)"', table))


def test_the_action_has_the_form_that_github_demands():
    action = load("action.yml")
    assert set(action) <= ACTION_KEYS
    assert all(isinstance(action[key], str) for key in ("name", "description"))
    for value in action["inputs"].values():
        assert set(value) <= {"description", "required", "default", "deprecationMessage"}
        assert isinstance(value["description"], str) and isinstance(value["default"], str)
    for value in action["outputs"].values():
        assert set(value) == {"description", "value"} and isinstance(value["description"], str)
    runs = action["runs"]
    assert set(runs) == {"using", "steps"} and runs["using"] == "composite" and runs["steps"]
    for step in runs["steps"]:
        # A step that uses another action would not be tested.
        assert set(step) <= STEP_KEYS and isinstance(step["run"], str) and "uses" not in step
        assert step["shell"] == "bash" and all(isinstance(v, str) for v in step["env"].values())
        # An expression in a script would execute what a user has written.
        assert not EXPRESSION.search(step["run"])
        shellcheck(step["run"])


def test_the_action_passes_each_input_and_output():
    action = load("action.yml")
    steps = action["runs"]["steps"]
    inputs = {match.strip() for step in steps for value in step["env"].values()
              for match in EXPRESSION.findall(value)}
    assert inputs == {f"inputs.{name}" for name in action["inputs"]}
    assert {name for step in steps for name in step["env"]} == variables_of_setup()
    written = re.search(r"^.*>>\"\$GITHUB_OUTPUT\"$", read(SETUP), re.MULTILINE)[0]
    names = {f"steps.{steps[-1]['id']}.outputs.{name}"
             for name in re.findall(r'"([\w-]+)=\$', written)}
    assert {EXPRESSION.fullmatch(v["value"])[1].strip()
            for v in action["outputs"].values()} == names


def test_the_job_has_the_form_that_gitlab_demands():
    included = load("buildlib/ci/gitlab.yml")
    assert list(included) == [".uroce"]
    job = included[".uroce"]
    assert set(job) <= JOB_KEYS and set(job["artifacts"]) <= ARTIFACTS_KEYS
    assert isinstance(job["image"], str)
    assert all(isinstance(value, str) for value in job["variables"].values())
    assert all(isinstance(line, str) for line in job["before_script"])
    assert job["artifacts"]["when"] in ("on_success", "on_failure", "always")
    # GitLab takes only files below the project's directory.
    assert all(not path.startswith(("/", "..")) for path in job["artifacts"]["paths"])
    shellcheck("set -e\n" + "\n".join(job["before_script"]), "sh")


def instructions():
    """(name, rest) of each instruction of the Containerfile, and its stage from 0 on."""
    text = re.sub(r"^#.*\n", "", read("Containerfile"), flags=re.MULTILINE)
    stage = -1
    for line in filter(None, text.replace("\\\n", "").split("\n")):
        name, rest = line.split(None, 1)
        assert name in INSTRUCTIONS, line
        stage += name == "FROM"
        yield name, rest, stage


def split_run(rest):
    """The options of --mount as dictionaries, and the command."""
    mounts = []
    while rest.startswith("--mount="):
        option, rest = rest.split(None, 1)
        mounts.append(dict(part.split("=", 1) for part in
                           option[len("--mount="):].split(",")))
    return mounts, rest


def test_the_containerfile_has_two_stages_of_one_release():
    stages = [rest for name, rest, _ in instructions() if name == "FROM"]
    image = "docker.io/library/debian:bookworm-slim"
    assert stages == [f"{image} AS build", image]


def test_the_containerfile_runs_what_the_tree_has():
    places = {}  # in the image, of what is copied or mounted: its place in the tree, or None
    for name, rest, _ in instructions():
        if name == "COPY":
            source, target = rest.split()
            assert os.path.exists(os.path.join(ROOT, source)), rest
            places[target] = source
        elif name == "RUN":
            mounts, command = split_run(rest)
            for mount in mounts:
                assert (mount["type"], mount["from"]) == ("bind", "build")
                places[mount["target"]] = mount["source"]
            shellcheck(command, "sh")
            programs = re.findall(r"(?<!\S)(/\w[\w/]*) (?:package|install)\b", command)
            assert len(programs) == 1, command
            path = programs[0]
            while not path.startswith("./"):
                target = max((t for t in places if path.startswith(t + "/")), key=len)
                path = os.path.join(places[target], os.path.relpath(path, target))
            assert os.path.normpath(path) == SETUP and os.access(os.path.join(ROOT, path), os.X_OK)
            assert set(re.findall(r"UROCE_CI_\w+", command)) <= variables_of_setup()


def test_the_packages_of_the_image_are_debians():
    names = [word for name, rest, stage in instructions() if name == "RUN" and stage == 1
             for found in re.findall(r"apt-get install ([^&]*)", rest)
             for word in shlex.split(found) if not word.startswith("-")]
    assert set(names) == {"ibverbs-utils", "perftest"}
    if not glob.glob("/var/lib/apt/lists/*_Packages*"):
        pytest.skip("no package lists here")
    for name in names:
        done = subprocess.run(["apt-cache", "show", "--no-all-versions", name],
                              stdout=subprocess.PIPE, text=True, check=False)
        assert re.search(rf"^Package: {name}$", done.stdout, re.MULTILINE), name


def test_builds_and_the_history_are_not_copied():
    left_out = [line for line in read(".dockerignore").splitlines() if line[:1] != "#"]
    assert {".git", "build", "build-*"} <= set(left_out)
    assert not any(line.startswith("buildlib") or line == "*" for line in left_out)


def blocks_of_recipe():
    return [yaml.safe_load(text) for text in
            re.findall(r"^```yaml\n(.*?)^```$", read(RECIPE), re.MULTILINE | re.DOTALL)]


def entries(value):
    """All dictionaries within a value."""
    if isinstance(value, dict):
        yield value
    for below in value.values() if isinstance(value, dict) else \
            value if isinstance(value, list) else ():
        yield from entries(below)


def test_the_recipe_uses_what_there_is():
    action, blocks = load("action.yml"), blocks_of_recipe()
    uses = [entry for block in blocks for entry in entries(block)
            if re.search("/uroce@", entry.get("uses", ""))]
    assert len(uses) >= 2
    for entry in uses:
        assert set(entry.get("with", ())) <= set(action["inputs"])
    text = read(RECIPE)
    assert set(re.findall(r"outputs\.([\w-]+)", text)) == {"capture"} <= set(action["outputs"])
    known = variables_of_setup() | set(load("buildlib/ci/gitlab.yml")[".uroce"]["variables"])
    assert set(re.findall(r"UROCE_CI_\w+", text)) <= known
    assert any(".uroce" in entry.get("extends", ()) for block in blocks
               for entry in entries(block))
    for block in blocks:
        for include in block.get("include", ()) if isinstance(block, dict) else ():
            assert os.path.exists(os.path.join(ROOT, include["file"]))
