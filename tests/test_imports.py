"""The sources that a module depends on."""

import modulefinder
from pathlib import Path

import pytest

from atenbench.imports import Package

SOURCE = Path(__file__).parent.parent / "src/atenbench"


def test_every_kind_and_place_of_import_is_seen(tmp_path: Path) -> None:
    package = tmp_path / "p"
    texts = {
        "__init__": "",
        "a": "import p.b as x\nfrom p import c, nothing\nimport os.path, other",
        "b": "def f():\n    if x:\n        from .d import g",
        "c": "try:\n    pass\nexcept E:\n    import p.e.f\nelse:\n    from . import h",
        "d": "import p.a",
        "e/__init__": "from ..i import value",
        "e/f": "match x:\n    case 1:\n        from p.j import y",
        "h": "with x:\n    class A:\n        import p.k",
        "i": "",
        "j": "",
        "k": "",
        "nobodys": "import p.a",
    }
    for name, text in texts.items():
        (package / name).parent.mkdir(exist_ok=True, parents=True)
        (package / f"{name}.py").write_text(text)
    found = Package(package).sources("p.a")
    assert found == sorted(package / f"{name}.py" for name in texts if name != "nobodys")
    assert Package(package).sources("p.j") == [package / "__init__.py", package / "j.py"]


@pytest.mark.parametrize("module", ["ingest", "aggregate", "inspect_cases"])
def test_it_finds_what_pythons_own_finder_finds(module: str) -> None:
    finder = modulefinder.ModuleFinder(path=[str(SOURCE.parent)])
    finder.run_script(str(SOURCE / f"{module}.py"))
    expected = {Path(found.__file__) for found in finder.modules.values() if found.__file__}
    assert set(Package(SOURCE).sources(f"atenbench.{module}")) == expected
    assert len(expected) > 3


def test_every_module_of_the_library_can_be_followed() -> None:
    package = Package(SOURCE)
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        assert path in package.sources(module)
