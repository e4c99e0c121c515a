"""What the theory says: the expected loss in closed form, stages, stationary points, growth rates."""

from saltus.papers.features.law import ddpm

__all__ = ["ddpm"]
