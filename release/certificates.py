"""The certificate authorities that this machine trusts; a company's own is among them and in no package's list."""

from __future__ import annotations

import os
from pathlib import Path

_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


def bundle() -> Path | None:
    """Return the file that holds them: the one ``SSL_CERT_FILE`` names, else the system's, if it has one."""
    candidates = (os.environ.get("SSL_CERT_FILE"), *_BUNDLES)
    return next((Path(name) for name in candidates if name and Path(name).is_file()), None)
