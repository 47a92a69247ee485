"""TLS: the certificate that the box makes and keeps, and files that cannot be used."""

import errno
import os
import ssl
import stat
from pathlib import Path

import pytest

from edgebox.config.config_file import ServerParameters
from edgebox.web.tls import TlsError, fingerprint, tls_context

SELF_SIGNED = ServerParameters(tls="self-signed")


def test_there_is_no_tls_unless_it_is_asked_for(tmp_path: Path) -> None:
    assert tls_context(ServerParameters(), tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_certificate_is_made_once_and_kept(tmp_path: Path) -> None:
    first = tls_context(SELF_SIGNED, tmp_path / "data")
    again = tls_context(SELF_SIGNED, tmp_path / "data")
    assert first is not None
    assert again is not None
    assert first[1] == again[1]
    assert stat.S_IMODE((tmp_path / "data" / "tls-key.pem").stat().st_mode) == 0o600
    for file in (tmp_path / "data").iterdir():
        file.unlink()
    other = tls_context(SELF_SIGNED, tmp_path / "data")
    assert other is not None
    assert other[1] != first[1]


def test_it_is_for_this_machine(tmp_path: Path) -> None:
    from cryptography import x509

    tls_context(ServerParameters(tls="self-signed", host="0.0.0.0"), tmp_path)
    certificate = x509.load_pem_x509_certificate((tmp_path / "tls.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    assert "127.0.0.1" in map(str, names.get_values_for_type(x509.IPAddress))
    der = ssl.PEM_cert_to_DER_cert((tmp_path / "tls.pem").read_text())
    assert fingerprint(ssl.DER_cert_to_PEM_cert(der)) == fingerprint(
        (tmp_path / "tls.pem").read_text()
    )


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        tls_context(SELF_SIGNED, tmp_path / folder)
    certificate, foreign = tmp_path / "one" / "tls.pem", tmp_path / "two" / "tls-key.pem"
    (tmp_path / "junk.pem").write_text("no certificate")
    for named, key in [
        (tmp_path / "missing.pem", foreign),
        (tmp_path / "junk.pem", foreign),
        (certificate, foreign),
    ]:
        server = ServerParameters(tls="files", tls_certificate=str(named), tls_key=str(key))
        with pytest.raises(TlsError, match=f"{named.name} with the key .*cannot be used"):
            tls_context(server, tmp_path)
    key = tmp_path / "one" / "tls-key.pem"
    server = ServerParameters(tls="files", tls_certificate=str(certificate), tls_key=str(key))
    assert tls_context(server, tmp_path) is not None


def test_a_disk_that_was_full_does_not_end_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, synced = os.fsync, list[int]()

    def fail_for_the_second(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 2:  # the key is there by then
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail_for_the_second)
    with pytest.raises(TlsError, match=r"cannot be kept .*No space left"):
        tls_context(SELF_SIGNED, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["tls-key.pem"]
    assert tls_context(SELF_SIGNED, tmp_path) is not None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TlsError, match="cannot be kept"):
        tls_context(SELF_SIGNED, tmp_path / "file")
