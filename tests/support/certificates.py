"""Certificates for tests of TLS, made here and now with `cryptography`, which whoever asks must have."""

from __future__ import annotations

import datetime
import ipaddress
import os


def for_localhost(folder: str | os.PathLike[str], *addresses: str) -> tuple[str, str]:
    """Write a certificate for localhost and these addresses, as `for_host` does."""
    return for_host(folder, "localhost", *addresses)


def for_host(folder: str | os.PathLike[str], host: str, *addresses: str) -> tuple[str, str]:
    """Write a certificate for a name and addresses, signed by itself; return its file and its key's.

    ``locked.pem`` beside them is the same key under a password.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    others = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    now, day = datetime.datetime.now(datetime.timezone.utc), datetime.timedelta(days=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host), *others]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    plain = key.private_bytes(pem, pkcs8, serialization.NoEncryption())
    locked = key.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"a password"))
    for file, data in (("cert.pem", made.public_bytes(pem)), ("key.pem", plain), ("locked.pem", locked)):
        with open(os.path.join(folder, file), "wb") as opened:
            opened.write(data)
    return os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
