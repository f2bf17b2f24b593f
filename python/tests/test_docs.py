"""Runs the code of docs/python.md, from its first block to its last one."""

import os
import re
import signal
import subprocess
import sys

import pytest

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "docs", "python.md")


def blocks():
    """Returns the language, the name of the file if the text before names one, and the code of each block."""
    with open(PAGE) as page:
        text = page.read()
    found = [(language, re.search(r"(?:^|as )`([\w./-]+)`:$", before), code) for before, language, code in re.findall(r"([^\n]*)\n\n```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]
    assert len(found) == text.count("\n```") // 2
    return found


@pytest.fixture
def shell(tmp_path):
    """Runs code with sh, and ends in the end what the code has left running."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)  # the Python of the tests, with its modules
    groups = []

    def run(code):
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        process = subprocess.Popen(["sh", "-euc", code], env={**os.environ, "PATH": path}, start_new_session=True)
        groups.append(process.pid)
        assert process.wait() == 0, code

    yield run
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass


def test_page(served, tmp_path, monkeypatch, capsys, shell):
    monkeypatch.chdir(tmp_path)
    for name, value in {**served.environment, "TDF_API": served.url, "TDF_TOKEN": served.token}.items():
        monkeypatch.setenv(name, value)
    names = {"__name__": "page"}
    languages = set()
    for number, (language, file, code) in enumerate(blocks()):
        languages.add(language)
        if file:
            os.makedirs(os.path.dirname(file[1]) or ".", exist_ok=True)
            with open(file[1], "w") as to:
                to.write(code)
        elif language == "sh":
            shell(code)
        else:
            exec(compile(code, f"block {number} of {PAGE}", "exec"), names)
    assert languages == {"python", "sh"}
    printed = capsys.readouterr().out
    assert "[4, 9]" in printed
    assert "[6, 24]" in printed
    assert "6 of 6 tasks succeeded" in printed
    assert "<tdf.Campaign grid: 6 of 6 tasks finished> [6, 2]" in printed
    assert "{'rate': 0.1, 'mode': 'fast'} 0.01" in printed
    assert "{'C': 10}" in printed
    assert 'loss(rate=1, mode="exact")' in printed
    assert "{'rate': 0.1, 'mode': 'fast'} 9 steps" in printed
    assert "2 tasks cancelled" in printed
    assert "[{'square': 49}, {'square': 64}, None]" in printed
