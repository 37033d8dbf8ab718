"""Which certificate authorities are trusted: a file of certificates in PEM form.

Libcurl in a wheel was built on another machine and may look for the bundle where that one kept it, so the file is
named to it. Order: what the operator says; SSL_CERT_FILE, as for every OpenSSL programme; where the known systems keep
theirs; the `certifi` package, if it happens to be installed. Without any, libcurl's own default stays: then either it
finds one or every https request fails as `tls`. Verification is never turned off.
"""

from __future__ import annotations

import importlib.resources
import os
import ssl

KNOWN_PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Gentoo
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # RHEL and its kin
    "/etc/ssl/cert.pem",  # Alpine, macOS, OpenBSD
    "/usr/local/share/certs/ca-root-nss.crt",  # FreeBSD
    "/opt/homebrew/etc/openssl@3/cert.pem",
    "/usr/local/etc/openssl@3/cert.pem",
)


def ca_file(named: str | None = None) -> str | None:
    """Path of the bundle to trust; None: libcurl's default. Raises ValueError if `named` cannot be read."""
    if named is not None:
        if not os.access(named, os.R_OK) or os.path.isdir(named):
            raise ValueError(f"{named} is not a readable file of certificates")
        return named
    for path in (ssl.get_default_verify_paths().cafile, *KNOWN_PLACES):  # the first honours SSL_CERT_FILE
        if path and os.path.isfile(path) and os.access(path, os.R_OK):
            return path
    try:
        bundled = importlib.resources.files("certifi").joinpath("cacert.pem")
    except ModuleNotFoundError:
        return None
    return str(bundled) if bundled.is_file() else None
