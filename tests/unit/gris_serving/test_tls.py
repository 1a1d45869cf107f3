"""TLS of a server: new files without a restart, and no secret line without the right ones."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.x509 import SubjectAlternativeName, UnrecognizedExtension

from gris_serving.admitting import Sender
from gris_serving.identity import certificate_names, sender_of
from gris_serving.reloading_files import SecurityError
from gris_serving.tls import ServerTls, TlsFiles, is_loopback, server_context
from pinot_connector.channels import open_channel
from pinot_connector.endpoints import Credentials, Endpoint
from tests.support.log_events import logged_events
from tests.support.pki import Authority, dns, email, uri
from tests.support.processes import budget_command, process


class Naming(grpc.GenericRpcHandler):
    """Answers every call with the names of its caller."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the one handler."""

        async def name(request: bytes, context: Any) -> bytes:
            return "\n".join(sorted(certificate_names(sender_of(context)))).encode()

        return grpc.unary_unary_rpc_method_handler(name)


@asynccontextmanager
async def serving(files: TlsFiles) -> AsyncIterator[str]:
    """Serve on a free port and give the address."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Naming(),))
    port = server.add_secure_port("127.0.0.1:0", ServerTls(files).of_a_port())
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)


async def names(address: str, credentials: Credentials) -> str:
    """Return the names that the server sees, by a connection of its own."""
    async with open_channel(Endpoint(address, credentials)) as channel:
        call: Any = channel.unary_unary("/any/Name")
        return bytes(await call(b"", timeout=30)).decode()


def shown_certificate(address: str) -> str:
    """Return the certificate that a server shows to a new connection."""
    host, _, port = address.rpartition(":")
    return ssl.get_server_certificate((host, int(port)), timeout=30)


def files_of(authority: Authority) -> TlsFiles:
    """Return the files of a server that wants certificates of this authority."""
    certificate, key = authority.server()
    return TlsFiles(certificate, key, authority.ca_file)


async def test_a_caller_is_known_by_every_name_and_its_kind(tmp_path: Path) -> None:
    """A name of one kind is never taken for one of another."""
    authority = Authority.new(tmp_path)
    client = authority.client(uri("spiffe://x/app"), dns("app.example.org"), email("app@example.org"))
    async with serving(files_of(authority)) as address:
        seen = await names(address, client)
    assert "dns:app.example.org\nemail:app@example.org\nuri:spiffe://x/app" == seen


async def test_a_name_does_not_end_at_a_zero_byte(tmp_path: Path) -> None:
    """An authority that signs whatever stands behind the zero byte has not said who stands before it."""
    authority = Authority.new(tmp_path)
    spoofed = [uri("spiffe://x/app\0.evil"), dns("app.example.org\0.evil"), email("app@example.org")]
    async with serving(files_of(authority)) as address:
        seen = await names(address, authority.client(*spoofed))
    assert "dns:app.example.org\0.evil\nemail:app@example.org\nuri:spiffe://x/app\0.evil" == seen


async def test_a_certificate_without_alternative_names_is_nobody(tmp_path: Path) -> None:
    """Whatever its common name says."""
    authority = Authority.new(tmp_path)
    async with serving(files_of(authority)) as address:
        assert "" == await names(address, authority.client(file="app.example.org"))


def test_a_certificate_whose_names_cannot_be_read_has_none(tmp_path: Path) -> None:
    """Also where only one of them is of a kind that nobody can read, and no call fails for it."""
    address = b"\xa3\x00"
    name = b"\x86\x0espiffe://x/app"
    for names, expected in ((name, {"uri:spiffe://x/app"}), (name + address, set()), (name[:-1], set())):
        raw = UnrecognizedExtension(SubjectAlternativeName.oid, bytes([0x30, len(names)]) + names)
        shown = Path(str(Authority.new(tmp_path).client(extension=raw).certificate_file)).read_bytes()
        assert expected == certificate_names(Sender(certificate=shown))


async def test_strangers_do_not_come_to_speak(tmp_path: Path) -> None:
    """No certificate, one of another authority, or a server of another authority: no call is made."""
    authority = Authority.new(tmp_path)
    (tmp_path / "other").mkdir()
    other = Authority.new(tmp_path / "other")
    foreign = other.client(uri("spiffe://x/app"))
    async with serving(files_of(authority)) as address:
        for credentials in (
            Credentials(authority.ca_file),
            Credentials(authority.ca_file, foreign.certificate_file, foreign.key_file),
            Credentials(other.ca_file),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await names(address, credentials)
            assert grpc.StatusCode.UNAVAILABLE is error.value.code()


async def test_new_files_serve_new_handshakes_without_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The certificate, its key and the clients' authority are all replaced; half a change changes nothing."""
    authority = Authority.new(tmp_path)
    files = TlsFiles(*authority.server())
    files.key.chmod(0o600)
    async with serving(files) as address:
        first = await in_thread(address)
        certificate, key = authority.server("next")
        files.certificate.write_bytes(certificate.read_bytes())
        with caplog.at_level(logging.ERROR):
            assert first == await in_thread(address)
        assert {"files.kept"} == {event for event, _ in logged_events(caplog)}
        files.key.write_bytes(key.read_bytes())
        assert certificate.read_text().strip() == (await in_thread(address)).strip()


@pytest.mark.parametrize(
    ("mode", "events"), [(0o400, []), (0o440, []), (0o444, ["key.readable"]), (0o604, ["key.readable"])]
)
def test_a_private_key_that_everybody_may_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, events: list[str]
) -> None:
    """The warning names the file; the server starts, because orchestrators mount secrets so."""
    files = TlsFiles(*Authority.new(tmp_path).server())
    files.key.chmod(mode)
    with caplog.at_level(logging.WARNING):
        ServerTls(files)
    assert events == [event for event, _ in logged_events(caplog)]
    assert all({"file": str(files.key)} == fields for _, fields in logged_events(caplog))


async def in_thread(address: str) -> str:
    """Return the shown certificate while the event loop goes on."""
    return await asyncio.to_thread(shown_certificate, address)


@pytest.mark.slow
async def test_each_port_of_a_server_is_given_new_files(tmp_path: Path) -> None:
    """Also one that nobody has connected to since."""
    authority = Authority.new(tmp_path)
    files = TlsFiles(*authority.server())
    tls, server = ServerTls(files), grpc.aio.server()
    addresses = [f"127.0.0.1:{server.add_secure_port('127.0.0.1:0', tls.of_a_port())}" for _ in range(3)]
    await server.start()
    first = files.certificate.read_text().strip()
    assert first == (await in_thread(addresses[0])).strip()
    certificate, key = authority.server("next")
    files.certificate.write_bytes(certificate.read_bytes())
    files.key.write_bytes(key.read_bytes())
    for address in addresses:
        assert certificate.read_text().strip() == (await in_thread(address)).strip() != first
    await server.stop(None)


@pytest.mark.usefixtures("starts_processes")
def test_a_service_outlives_strangers_who_connect_all_at_once(tmp_path: Path) -> None:
    """Eight connect again and again while its files are replaced: none is given a certificate that is being freed."""
    authority = Authority.new(tmp_path)
    files = TlsFiles(*authority.server())
    words = [*budget_command(tmp_path), "--tls-certificate", files.certificate, "--tls-key", files.key]
    with process("budget_service", words, tmp_path / "budget.log") as ready:
        until = time.monotonic() + 3
        with ThreadPoolExecutor(8) as strangers:
            counts = [strangers.submit(connected, ready["address"], authority, until) for _ in range(8)]
            while time.monotonic() < until:
                time.sleep(0.5)
                files.key.write_bytes(files.key.read_bytes())
            assert min(each.result() for each in counts) > 0
        assert shown_certificate(ready["address"]).strip() == files.certificate.read_text().strip()


def connected(address: str, authority: Authority, until: float) -> int:
    """Return how many connections could be made by then, each closed at once."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.set_alpn_protocols(["h2"])
    made = 0
    while time.monotonic() < until:
        with closing(socket.create_connection((host, int(port)), timeout=30)) as line:
            context.wrap_socket(line, server_hostname="localhost").close()
            made += 1
    return made


async def test_a_new_authority_of_clients_counts_from_the_next_handshake(tmp_path: Path) -> None:
    """From then on, a client with a certificate of the previous authority is refused."""
    authority = Authority.new(tmp_path)
    (tmp_path / "next").mkdir()
    following = Authority.new(tmp_path / "next")
    files = files_of(authority)
    old, new = authority.client(dns("old")), following.client(dns("new"))
    async with serving(files) as address:
        assert "dns:old" == await names(address, old)
        authority.ca_file.write_bytes(following.ca_file.read_bytes())
        certificate, key = following.server()
        files.certificate.write_bytes(certificate.read_bytes())
        files.key.write_bytes(key.read_bytes())
        assert "dns:new" == await names(address, new)
        with pytest.raises(grpc.aio.AioRpcError):
            await names(address, Credentials(following.ca_file, old.certificate_file, old.key_file))


@pytest.mark.parametrize("spoilt", ["certificate", "key", "client_ca"])
@pytest.mark.parametrize("content", ["", "garbage", None])
def test_files_that_cannot_be_used_are_named(tmp_path: Path, spoilt: str, content: str | None) -> None:
    """A missing, empty or senseless file is an error before anything is served."""
    files = files_of(Authority.new(tmp_path))
    path: Path = getattr(files, spoilt)
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(SecurityError, match=str(path)):
        ServerTls(files)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    """gRPC itself would only find out on each handshake."""
    authority = Authority.new(tmp_path)
    certificate, _ = authority.server()
    _, key = authority.server("other")
    with pytest.raises(SecurityError, match="expected the key of the certificate"):
        ServerTls(TlsFiles(certificate, key))


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
        ("localhost.example.org:1", False),
        ("127.0.0.1.example.org:1", False),
        ("2130706433:1", False),
        ("[::ffff:10.0.0.1]:1", False),
        (":1", False),
    ],
)
def test_only_addresses_of_this_machine_are_loopback(listen: str, expected: bool) -> None:
    """What is not certainly this machine's own counts as the network."""
    assert expected is is_loopback(listen)


async def test_pythons_own_tls_serves_new_files_and_new_authorities_too(tmp_path: Path) -> None:
    """A connection begun after a change is shown the new certificate, and measured by the new authority of clients."""
    (tmp_path / "new").mkdir()
    old, new = Authority.new(tmp_path), Authority.new(tmp_path / "new")
    files = TlsFiles(*old.server(), client_ca=tmp_path / "ca.pem")

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"seen")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_context(files))
    port = server.sockets[0].getsockname()[1]

    async def seen(trusted: Authority, shown: Authority | None) -> bytes:
        context = ssl.create_default_context(cafile=str(trusted.ca_file))
        if shown is not None:
            known = shown.client(file="known")
            context.load_cert_chain(str(known.certificate_file), str(known.key_file))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            found = await reader.read()
            writer.close()
        except (ssl.SSLError, ConnectionError):
            return b""
        return found

    assert [b"seen", b"", b""] == [await seen(old, old), await seen(old, new), await seen(old, None)]
    certificate, key = new.server()
    for source, target in (
        (certificate, files.certificate),
        (key, files.key),
        (new.ca_file, files.client_ca),
    ):
        assert target is not None
        target.write_bytes(source.read_bytes())
    old_again = Authority(old.ca, tmp_path / "new")
    assert [b"seen", b""] == [await seen(new, new), await seen(new, old_again)]
    server.close()
    await server.wait_closed()


def test_no_session_is_resumed_where_certificates_are_verified(tmp_path: Path) -> None:
    """It would be as whom it began, whatever has become of the authority and of the certificate's dates."""
    authority = Authority.new(tmp_path)
    serving, known = server_context(files_of(authority)), authority.client(dns("a"), file="known")
    for version, expected in ((ssl.TLSVersion.TLSv1_3, False), (ssl.TLSVersion.TLSv1_2, None)):
        context = ssl.create_default_context(cafile=str(authority.ca_file))
        context.load_cert_chain(str(known.certificate_file), str(known.key_file))
        context.maximum_version = version
        first = shaken(serving, context, None)
        if expected is None:
            assert first is None
        else:
            assert first is not None
            again = shaken(serving, context, first.session)
            assert again is not None
            assert again.session_reused is expected


def shaken(serving: ssl.SSLContext, context: ssl.SSLContext, session: Any) -> ssl.SSLObject | None:
    """Return the client's side of a connection, None if there is no agreement."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = context.wrap_bio(to_client, to_server, server_hostname="localhost", session=session)
    for _ in range(5):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return None
    server.write(b"x")
    assert client.read(1) == b"x"
    return client


def test_an_expired_certificate_has_no_names(tmp_path: Path) -> None:
    """Also on a connection that began before, or was resumed."""
    authority = Authority.new(tmp_path)
    for valid_for, expected in ((timedelta(minutes=1), {"dns:a"}), (timedelta(seconds=-1), set())):
        known = authority.client(dns("a"), valid_for=valid_for)
        shown = Sender(certificate=Path(str(known.certificate_file)).read_bytes())
        assert certificate_names(shown) == expected
