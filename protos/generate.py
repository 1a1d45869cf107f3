"""Writes protos/generated from protos/gris; with --check, reports whether it is up to date.

Run it by `make protos`. Nothing in it is written by hand. The generated package is imported as `gris_api`:
PyPI's `gris` is somebody else's and owns the folder `gris`. What is sent keeps the names in the protos.
"""

from __future__ import annotations

import filecmp
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
GENERATED = ROOT / "generated"
PACKAGE = "gris_api"
# Imports, and qualified names of modules in the type information; the names of protos and services have no `_pb2`.
_IMPORTED = re.compile(r"\bgris(?=\.\w+\.v\d+( import\b|\.\w+_pb2))")
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
    package = (target / "gris").rename(target / PACKAGE)
    for path in (path for path in package.rglob("*") if path.is_file()):
        path.write_text(_IMPORTED.sub(PACKAGE, path.read_text()))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__init__.py").write_text(PACKAGE_NOTE)
    (package / "py.typed").touch()


def same(left: Path, right: Path) -> bool:
    """Return whether two folders hold the same files, caches aside."""
    comparison = filecmp.dircmp(left, right, ignore=["__pycache__"])
    if comparison.left_only or comparison.right_only:
        return False
    _, different, unreadable = filecmp.cmpfiles(left, right, comparison.common_files, shallow=False)
    return not different and not unreadable and all(same(left / d, right / d) for d in comparison.common_dirs)


def main() -> int:
    """Generate, or check; the exit code is 1 if something is out of date."""
    with tempfile.TemporaryDirectory() as scratch:
        code = Path(scratch) / "code"
        code.mkdir()
        generate(code)
        if "--check" in sys.argv[1:]:
            fresh = same(code / PACKAGE, GENERATED / PACKAGE)
            print("generated code is up to date" if fresh else "out of date: run `make protos`")
            return 0 if fresh else 1
        shutil.rmtree(GENERATED, ignore_errors=True)
        shutil.copytree(code, GENERATED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
