"""Strict by default: an accidental promotion of rank or type in a method is an error here."""

import os

# One thread a process: two pytest workers share two cores, and oversubscription is slower than either.
# Most of a test's time is compiling, so the compiler is told to be quick (COMPILATIONS in the lab's worker).
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false --xla_cpu_multi_thread_eigen=false",
)
os.environ.setdefault("PJRT_NPROC", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Programs that draw random numbers compile about four times faster so; most of a test's time is compiling.
os.environ.setdefault("JAX_THREEFRY_PARTITIONABLE", "0")

# Modules of tests are read for examples too, but these share a name.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]
