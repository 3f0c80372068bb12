"""The native oracle: whether the module's text is what the same Triton makes on an ordinary 64-bit machine."""
