"""Writes docs/api, a page for each package: its RPCs with a program each, and each of its messages once.

`make docs` runs it. The pages are made from the comments of the protos and the programs of examples/rpc, and are not
committed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

ROOT = Path(__file__).resolve().parent
EXAMPLES = ROOT.parent / "examples" / "rpc"
OURS = ".gris."
GATEWAY = ".gris.app.v1.PrivateQueryService"
_INTRODUCTION = (
    "Made from the protos, which are the contract, and from programs that the tests run. The programs read addresses "
    "from the environment: `GRIS_DP`, `GRIS_BUDGET` and `GRIS_BUDGET_ADMIN`; for the gateway `GRIS_GATEWAY` and the "
    "PEM files `GRIS_CA_FILE`, `GRIS_CERTIFICATE_FILE` and `GRIS_KEY_FILE`."
)


@dataclass(frozen=True)
class Contract:
    """Everything that the protos declare, by full name with a leading dot, with its comments."""

    services: dict[str, ServiceDescriptorProto]
    types: dict[str, DescriptorProto | EnumDescriptorProto]
    comments: dict[str, str]


def write_pages(target: Path) -> list[Path]:
    """Write a page for each package below `target`, and return them."""
    contract = _contract()
    target.mkdir(parents=True, exist_ok=True)
    packages = dict.fromkeys(_package(name) for name in (*contract.services, *contract.types))
    return [_write_page(contract, package, target) for package in packages]


def _write_page(contract: Contract, package: str, target: Path) -> Path:
    page = target / f"{package}.md"
    page.write_text("\n".join(_sections(contract, package)))
    return page


def _sections(contract: Contract, package: str) -> Iterator[str]:
    yield f"# {package}\n\n{_INTRODUCTION}\n"
    for name, service in contract.services.items():
        if _package(name) == package:
            yield f"## {service.name}\n\n{_prose(contract.comments[name])}\n"
            yield from (_method(contract, name, method) for method in service.method)
    yield "## Messages\n"
    for name in contract.types:
        if _package(name) == package:
            yield f"### {_short(name)}\n\n{_prose(contract.comments[name])}\n\n{_table(contract, name)}"


def _package(name: str) -> str:
    return name.rpartition(".")[0].removeprefix(".")


def _contract() -> Contract:
    contract = Contract({}, {}, {})
    for file in _files():
        prefix = f".{file.package}"
        contract.services.update({f"{prefix}.{each.name}": each for each in file.service})
        contract.types.update({f"{prefix}.{each.name}": each for each in file.message_type})
        contract.types.update({f"{prefix}.{each.name}": each for each in file.enum_type})
        for location in file.source_code_info.location:
            if (name := _declared(file, tuple(location.path))) is not None:
                paragraphs = [" ".join(each.split()) for each in location.leading_comments.split("\n\n")]
                contract.comments[f"{prefix}.{name}"] = " ".join(paragraphs)
    return contract


def _files() -> list[FileDescriptorProto]:
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "gris").rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        found = Path(scratch) / "descriptors"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}", "--include_source_info"]
        command += [f"--descriptor_set_out={found}", *sources]
        subprocess.run(command, check=True, cwd=ROOT)  # noqa: S603 - a fixed command
        return list(FileDescriptorSet.FromString(found.read_bytes()).file)


def _declared(file: FileDescriptorProto, path: tuple[int, ...]) -> str | None:
    """Return the name of the declaration at a path, if it is top-level or directly inside a top-level one.

    The numbers are those of descriptor.proto: 4, 5 and 6 are messages, enumerations and services.
    """
    declarations: dict[int, Sequence[Any]] = {4: file.message_type, 5: file.enum_type, 6: file.service}
    match path:
        case (4 | 5 | 6 as kind, index):
            return str(declarations[kind][index].name)
        case (4, index, 2, part):
            return f"{file.message_type[index].name}.{file.message_type[index].field[part].name}"
        case (5, index, 2, part):
            return f"{file.enum_type[index].name}.{file.enum_type[index].value[part].name}"
        case (6, index, 2, part):
            return f"{file.service[index].name}.{file.service[index].method[part].name}"
    return None


def _method(contract: Contract, service: str, method: MethodDescriptorProto) -> str:
    asked, answered = (_linked(each) for each in (method.input_type, method.output_type))
    streams = ["a stream of " if each else "" for each in (method.client_streaming, method.server_streaming)]
    return (
        f"### {method.name}\n\n{_prose(contract.comments[f'{service}.{method.name}'])}\n\n"
        f"It takes {streams[0]}{asked} and returns {streams[1]}{answered}.\n\n"
        f"```python\n{_example(service, method.name)}```\n"
    )


def _table(contract: Contract, name: str) -> str:
    kind = contract.types[name]
    if isinstance(kind, EnumDescriptorProto):
        rows = [
            f"| `{each.name}` | {_cell(contract.comments[f'{name}.{each.name}'])} |" for each in kind.value
        ]
        return "\n".join(["| value | |", "|---|---|", *rows, ""])
    if not kind.field:
        return "It has no fields.\n"
    rows = [
        f"| `{each.name}` | {_type(each)} | {_cell(contract.comments[f'{name}.{each.name}'])} |"
        for each in kind.field
    ]
    return "\n".join(["| field | type | |", "|---|---|---|", *rows, ""])


def _type(field: FieldDescriptorProto) -> str:
    plain = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    name = _linked(field.type_name) if field.type_name else plain
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"{name}, repeated"
    return f"{name}, one of these" if field.HasField("oneof_index") and not field.proto3_optional else name


def _linked(name: str) -> str:
    """Return the name of a type, as a link to where it is described if it is one of ours."""
    if not name.startswith(OURS):
        return f"`{name.removeprefix('.')}`"
    return f"[{_short(name)}]({_package(name)}.md#{_short(name).lower()})"


def _short(name: str) -> str:
    return name.rpartition(".")[2] if name.startswith(OURS) else name.removeprefix(".")


def _prose(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _example(service: str, method: str) -> str:
    # The gateway's programs have a folder of their own: some of its methods are called like another service's.
    folder = EXAMPLES / "gateway" if service == GATEWAY else EXAMPLES
    return (folder / f"{re.sub(r'(?<!^)(?=[A-Z])', '_', method).lower()}.py").read_text()


if __name__ == "__main__":
    write_pages(ROOT.parent / "docs" / "api")
