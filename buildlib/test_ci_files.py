# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The form of action.yml and buildlib/ci/gitlab.yml, and the shell code in them.

tests/integ/dropin/test_ci.py executes them.
"""
import os
import re
import subprocess

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
        # What the steps of others do would not be tested.
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
    # GitLab takes only what is below the project's folder.
    assert all(not path.startswith(("/", "..")) for path in job["artifacts"]["paths"])
    shellcheck("set -e\n" + "\n".join(job["before_script"]), "sh")


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
