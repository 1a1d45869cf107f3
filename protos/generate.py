"""Writes protos/generated and docs/api from protos/gris; with --check, tells whether they are up to date.

Run it by `make protos`. Nothing under either is written by hand.
"""

from __future__ import annotations

import filecmp
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import write_pages

ROOT = Path(__file__).resolve().parent
GENERATED = ROOT / "generated"
PAGES = ROOT.parent / "docs" / "api"
PACKAGE_NOTE = '"""Generated from the protocol buffers of Gris by protos/generate.py."""\n'


def generate(target: Path) -> None:
    """Write messages, stubs and type information of every proto below `target`."""
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "gris").rglob("*.proto"))
    tools = Path(sys.executable).parent
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}"]
    command += [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python")]
    command += [
        f"--plugin=protoc-gen-mypy_grpc={tools / 'protoc-gen-mypy_grpc'}",
        f"--mypy_grpc_out={target}",
    ]
    subprocess.run([*command, *sources], check=True, cwd=ROOT)  # noqa: S603 - a fixed command
    for folder in [target / "gris", *(path for path in (target / "gris").rglob("*") if path.is_dir())]:
        (folder / "__init__.py").write_text(PACKAGE_NOTE)
    (target / "gris" / "py.typed").touch()


def same(left: Path, right: Path) -> bool:
    """Tell whether two folders hold the same files, caches aside."""
    comparison = filecmp.dircmp(left, right, ignore=["__pycache__"])
    if comparison.left_only or comparison.right_only:
        return False
    _, different, unreadable = filecmp.cmpfiles(left, right, comparison.common_files, shallow=False)
    return not different and not unreadable and all(same(left / d, right / d) for d in comparison.common_dirs)


def main() -> int:
    """Generate, or check; the exit code is 1 if something is out of date."""
    with tempfile.TemporaryDirectory() as scratch:
        code, pages = Path(scratch) / "code", Path(scratch) / "pages"
        code.mkdir()
        generate(code)
        write_pages(pages)
        if "--check" in sys.argv[1:]:
            fresh = same(code / "gris", GENERATED / "gris") and same(pages, PAGES)
            print("generated code and pages are up to date" if fresh else "out of date: run `make protos`")
            return 0 if fresh else 1
        for made, kept in ((code, GENERATED), (pages, PAGES)):
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(made, kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
