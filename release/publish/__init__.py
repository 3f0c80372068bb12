"""Where a signed release goes: GitHub, a package index, a cache of libraries; each resumable, each read back."""
