"""TLS of the box: the user's certificate, or one that it signs itself and keeps."""

import contextlib
import hashlib
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from edgebox.config.config_file import ServerParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.storage.whole_file import write_whole
from edgebox.web.addresses import own_names, reachable_at

_DAYS = 3650
"""Phones keep what a person has accepted for as long as it is valid."""


class TlsError(EdgeboxError):
    """The certificate cannot be used; the message says what to do."""

    code = "tls"
    exit_code = 78
    """As for a wrong configuration: a person has to correct it."""


def tls_context(server: ServerParameters, folder: Path) -> tuple[ssl.SSLContext, str] | None:
    """Return what TLS is served with, and the certificate's fingerprint; None: no TLS. Blocks.

    Args:
        server: the configuration.
        folder: where a certificate of the box's own is kept.

    Raises:
        TlsError: the certificate cannot be used, or not be made.
    """
    if server.tls == "off":
        return None
    if server.tls == "self-signed":
        certificate, key = folder / "tls.pem", folder / "tls-key.pem"
        if not (certificate.exists() and key.exists()):
            _make(certificate, key, server.host)
    else:
        certificate, key = Path(server.tls_certificate), Path(server.tls_key)
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key)
        return context, fingerprint(certificate.read_text("ascii"))
    except (OSError, ValueError) as error:
        raise TlsError(
            f"the certificate {certificate} with the key {key} cannot be used ({error}): both must "
            "be PEM files that the box can read, and belong together"
        ) from error


def fingerprint(pem: str) -> str:
    """Return the SHA-256 fingerprint of the first certificate of a PEM file, in hexadecimal.

    Raises:
        ValueError: there is none.
    """
    end = "-----END CERTIFICATE-----"
    first = pem[pem.find("-----BEGIN CERTIFICATE-----") :].partition(end)[0] + end + "\n"
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest()


def _make(certificate: Path, key: Path, host: str) -> None:
    """Make a certificate for the names and addresses of this machine, and its key.

    Raises:
        TlsError: the library is missing, or the files cannot be written.
    """
    try:
        from cryptography import x509  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
        from cryptography.x509.oid import NameOID  # noqa: PLC0415
    except ImportError:
        raise TlsError(
            "tls = \"self-signed\" needs the extra tls: pip install 'edgebox[tls]'; or name a "
            'certificate of your own with tls = "files"'
        ) from None
    names = ["localhost", *own_names(host)]
    addresses = [ip_address("127.0.0.1"), ip_address("::1")]
    for found in reachable_at(host):
        with contextlib.suppress(ValueError):
            addresses.append(ip_address(found))
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"edgebox on {names[1]}"[:64])])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(
            x509.SubjectAlternativeName(
                [
                    *(x509.DNSName(each) for each in dict.fromkeys(names)),
                    *(x509.IPAddress(each) for each in dict.fromkeys(addresses)),
                ]
            ),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    written = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        certificate.parent.mkdir(parents=True, exist_ok=True)
        write_whole(key, written)
        write_whole(certificate, made.public_bytes(serialization.Encoding.PEM))
    except OSError as error:
        raise TlsError(f"{certificate}: the certificate cannot be kept ({error})") from error
