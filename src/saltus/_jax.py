"""The one door to JAX: float64 on, one host device per core, before anything else touches it."""

from __future__ import annotations

import os
import warnings

import jax
import jax.numpy as jnp

__all__ = ["host_devices", "jax", "jnp"]


# Small loops become one kernel, and a kernel may have several outputs: four to sixteen times as fast on the
# tiny systems of the SIM theory. Options of this kind can only be set before the CPU backend starts.
_CPU_OPTIONS = "xla_cpu_use_multi_output_fusion,xla_cpu_small_while_loop_byte_threshold=1000000"


def _configure() -> None:
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={_CPU_OPTIONS}".strip()
    jax.config.update("jax_enable_x64", True)
    # A single CPU device leaves cores idle on small programs; one device per core lets independent
    # runs proceed side by side. It only works before the backend starts, so a user who has already
    # used JAX keeps the devices they have.
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    try:
        jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))
    except (RuntimeError, AttributeError) as error:
        warnings.warn(f"JAX was already running: using the host devices it has ({error})", stacklevel=3)


_configure()


def host_devices() -> list[jax.Device]:
    """Devices an ensemble is spread over: every accelerator, or every core of the host."""
    return list(jax.local_devices())
