"""The one door to JAX: float64 on, one host device per core, before anything else touches it."""

from __future__ import annotations

import os
import warnings

import jax
import jax.numpy as jnp

__all__ = ["host_devices", "jax", "jnp"]


def _configure() -> None:
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
