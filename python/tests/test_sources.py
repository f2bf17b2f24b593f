import importlib
import os
import sys
import time

from tdf.sources import Sources


def test_sources(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    sources, file = Sources(), tmp_path / "of_sources.py"
    file.touch()
    os.utime(file, (1, 1))
    importlib.import_module("of_sources")
    sys.modules.update(nothing=None, strange=object(), gone=type(sys)("gone"))
    sources.note(time.time())
    assert list(sources.marks) == [str(file)]
    assert not sources.changed()
    file.write_text("# longer")
    os.utime(file, (1, 1))
    assert sources.changed()


def test_a_change_while_the_module_is_loaded(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    sources = Sources()
    (tmp_path / "of_now.py").touch()
    importlib.import_module("of_now")
    sources.note(os.stat(tmp_path / "of_now.py").st_mtime)
    assert sources.changed()
