import fnmatch
import os
import re

import pytest

import tdf
from tdf.program import entries, translated


def plant(directory, **files):
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def test_push_stores_what_tdf_push_stores(client, served, tmp_path):
    """Both leave out the secrets of ignored files, and store links, dot files and executables alike."""
    kept = {
        "main/start": "#!/bin/sh\necho started\n", "tool": "#!/bin/sh\n", "a-b": "1", "a/b": "2", ".hidden": "x", "größe": "", "deep/er/" + "long" * 40: "y",
        "x/top": "t", "sub/.tdfignore": "run.sh\n", "keep[1]": "k", "[a]": "k", "a.o/inside": "", "zeros": "\0" * (8 << 20), "env.txt": "public",
    }
    secret = {
        "secret.env": "KEY=1", "sub/other.env": "KEY=2", "data/secret": "KEY=3", "top": "KEY=4", "tmp1": "KEY=5", "results/x": "", "sub/results/x": "",
        "star*": "KEY=6", ".git/config": "", "sub/.venv/bin/x": "", "__pycache__/x.pyc": "", ".tdf-x": "", "x/y/z.log": "", "b-": "", "é9": "",
    }
    plant(tmp_path, **kept, **secret)
    (tmp_path / ".tdfignore").write_text(
        "\ufeff# comment\n\n*.env\n  data/secret\r\n/top\ntmp[0-9]\nresults/\nstar\\*\n./x/*/*.log\n[b-b]-\n[^a-zA-Z.]9\n[z-a]\n*.o/nothing\n"
    )
    (tmp_path / "tool").chmod(0o711)
    (tmp_path / "empty").mkdir()
    (tmp_path / "run.sh").symlink_to("main/start")
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "to_directory").symlink_to("deep/er")
    pushed = client.push(tmp_path)
    assert {name for name in entries(str(tmp_path)) if not (tmp_path / name).is_dir()} == {*kept, "run.sh", "link"}
    by_command = served.run("push", str(tmp_path))
    assert pushed["source"] in by_command
    assert pushed["program"] in by_command


@pytest.mark.parametrize("line", ["!a", "a/**/b", "[a", "[]", "[a-]", "[-a]", "a\\", "/", "[^]"])
def test_invalid_patterns_are_refused(client, tmp_path, line):
    plant(tmp_path, **{"run.sh": "#!/bin/sh\n", ".tdfignore": f"x\n{line}\n"})
    with pytest.raises(tdf.TDFError, match=r"store program .*: .tdfignore, line 2: .* is not a valid pattern"):
        client.push(tmp_path)


@pytest.mark.parametrize("glob", ["*", "a*b", "?", "[ab]?", "[^b]*", "a.b"])
def test_patterns_are_those_of_the_shell(glob):
    for name in ("", "a", "b", "ab", "axb", "a.b", "ba", "c"):
        assert bool(re.fullmatch(translated(glob), name)) == fnmatch.fnmatchcase(name, glob.replace("^", "!"))
        assert not re.fullmatch(translated(glob), "a/" + name) or glob == "[^b]/"


def test_what_cannot_be_packed(client, tmp_path):
    with pytest.raises(tdf.TDFError, match="it has no run.sh; put a script"):
        client.push(tmp_path)
    (tmp_path / "run.sh").symlink_to("/bin/sh")
    with pytest.raises(tdf.TDFError, match="run.sh is a symbolic link that leads out"):
        client.push(tmp_path)
    (tmp_path / "run.sh").unlink()
    plant(tmp_path, **{"run.sh": "#!/bin/sh\n"})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(tdf.TDFError, match="pipe is a socket, a pipe or a device"):
        client.push(tmp_path)
    (tmp_path / "pipe").unlink()
    (tmp_path / "link").symlink_to("/etc/hostname")
    with pytest.raises(tdf.APIError, match="is an absolute path"):
        client.push(tmp_path)
