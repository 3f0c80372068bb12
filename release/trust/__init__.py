"""Signatures, provenance, the bill of materials, and the verification of all; nothing here knows GitHub's API."""
