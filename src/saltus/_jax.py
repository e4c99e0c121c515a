"""The one door to JAX: float64 on and the host's options set before anything else touches it."""

from __future__ import annotations

import os

import jax
import jax.numpy as jnp

__all__ = ["jax", "jnp", "workers"]


# Small loops become one kernel, and a kernel may have several outputs: four to sixteen times as fast on the
# tiny systems of the SIM theory. Options of this kind can only be set before the CPU backend starts.
_CPU_OPTIONS = "xla_cpu_use_multi_output_fusion,xla_cpu_small_while_loop_byte_threshold=1000000"


def _configure() -> None:
    flags = os.environ.get("XLA_FLAGS", "")
    # JAX hands small matrices on the host to scipy's LAPACK, which is loaded when the first is met. Its
    # threads wait in loops that keep cores busy: the inverse of 32 x 32 complex numbers took hundred times
    # as long and more. numpy, which JAX has loaded by now, keeps its threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if "xla_backend_extra_options" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={_CPU_OPTIONS}".strip()
    jax.config.update("jax_enable_x64", True)
    # On the host every core has a thread of ours that calls; handing a call on to XLA's threads makes two
    # of them at a time a quarter slower.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    # float32 means float32: an accelerator would otherwise round matrix products to tf32.
    jax.config.update("jax_default_matmul_precision", "highest")


_configure()


def workers() -> list[jax.Device]:
    """Where an ensemble's blocks go, one thread each: every accelerator, or the host once for each core.

    Compiled calls release the interpreter lock, so threads keep all cores busy on one host device; a
    device for each core would compile every program once for each.
    """
    devices = list(jax.local_devices())
    return devices * len(os.sched_getaffinity(0)) if devices[0].platform == "cpu" else devices
