"""Strict by default: an accidental promotion of rank or type in a method is an error here."""

import os

# One thread a process: two pytest workers share two cores, and oversubscription is slower than either.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Programs that draw random numbers compile about four times faster so; most of a test's time is compiling.
os.environ.setdefault("JAX_THREEFRY_PARTITIONABLE", "0")
