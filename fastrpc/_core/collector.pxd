# CPython's collector of cycles, and from which size of a line on it has to wait.

cdef enum:
    LARGE = 64 * 1024  # bytes: what a longer line is made into would be looked at again and again

cdef extern from "Python.h":
    int PyGC_Disable() noexcept
    int PyGC_Enable() noexcept
