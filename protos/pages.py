"""Writes a page for each RPC, docs/api, from the comments of the protos and the programs of examples/rpc."""

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


@dataclass(frozen=True)
class Contract:
    """Everything that the protos declare, by full name with a leading dot, with its comments.

    `errors` holds a service's comment after its first paragraph, which is about errors.
    """

    services: dict[str, ServiceDescriptorProto]
    types: dict[str, DescriptorProto | EnumDescriptorProto]
    comments: dict[str, str]
    errors: dict[str, str]


def write_pages(target: Path) -> None:
    """Write an index and one page for each RPC below `target`."""
    contract = _contract()
    index = [
        "# The RPCs\n\nThese pages are generated from the protos, which are the contract, and from programs that the"
        " tests run. The programs\nread addresses from the environment: `GRIS_DP`, `GRIS_BUDGET` and"
        " `GRIS_BUDGET_ADMIN`; for the gateway `GRIS_GATEWAY` and\nthe PEM files `GRIS_CA_FILE`,"
        " `GRIS_CERTIFICATE_FILE` and `GRIS_KEY_FILE`.\n"
    ]
    for name, service in contract.services.items():
        index.append(
            f"\n## `{name.removeprefix('.')}`\n\n{_prose(contract.comments[name])}\n\n| RPC | |\n|---|---|\n"
        )
        for method in service.method:
            page = target / service.name / f"{method.name}.md"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(_page(contract, name, method))
            gives = _cell(contract.comments[f"{name}.{method.name}"])
            index.append(f"| [{method.name}]({service.name}/{method.name}.md) | {gives} |\n")
    (target / "README.md").write_text("".join(index))


def _contract() -> Contract:
    contract = Contract({}, {}, {}, {})
    for file in _files():
        prefix = f".{file.package}"
        contract.services.update({f"{prefix}.{each.name}": each for each in file.service})
        contract.types.update({f"{prefix}.{each.name}": each for each in file.message_type})
        contract.types.update({f"{prefix}.{each.name}": each for each in file.enum_type})
        for location in file.source_code_info.location:
            if (name := _declared(file, tuple(location.path))) is not None:
                paragraphs = [" ".join(each.split()) for each in location.leading_comments.split("\n\n")]
                contract.comments[f"{prefix}.{name}"] = " ".join(paragraphs)
                contract.errors[f"{prefix}.{name}"] = " ".join(paragraphs[1:])
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


def _page(contract: Contract, service: str, method: MethodDescriptorProto) -> str:
    asked, answered = (_short(each) for each in (method.input_type, method.output_type))
    streams = ["stream " if each else "" for each in (method.client_streaming, method.server_streaming)]
    parts = [
        f"# {method.name}\n\n{_prose(contract.comments[f'{service}.{method.name}'])}\n",
        f"`{service.removeprefix('.')}/{method.name}({streams[0]}{asked}) returns ({streams[1]}{answered})`\n",
        f"## Request\n\n{_table(contract, method.input_type)}",
        f"## Answer\n\n{_table(contract, method.output_type)}",
        *_inner(contract, method),
        f"## Errors\n\n{_prose(contract.errors[service])}\n",
        f"## Example\n\n```python\n{_example(service, method.name)}```\n",
    ]
    return "\n".join(parts)


def _inner(contract: Contract, method: MethodDescriptorProto) -> Iterator[str]:
    """Yield a section for each type that a method's messages use, once, in the order of first use."""
    # Not a set: its order would change from run to run.
    ends = (method.input_type, method.output_type)
    names = dict.fromkeys(name for end in ends for name in _used(contract, end))
    for name in names:
        if name not in ends:
            yield f"## {_short(name)}\n\n{_prose(contract.comments[name])}\n\n{_table(contract, name)}"


def _used(contract: Contract, name: str) -> Iterator[str]:
    kind = contract.types[name]
    for field in kind.field if isinstance(kind, DescriptorProto) else ():
        if field.type_name.startswith(OURS):
            yield field.type_name
            yield from _used(contract, field.type_name)


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
    name = f"`{_short(field.type_name)}`" if field.type_name else plain
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"{name}, repeated"
    return f"{name}, one of these" if field.HasField("oneof_index") and not field.proto3_optional else name


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
