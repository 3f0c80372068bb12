"""One module for each kind of kernel; each declares ``KERNELS``."""
