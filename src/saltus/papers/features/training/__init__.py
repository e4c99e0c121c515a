"""Gradient descent on both tasks, in the coordinates of the span, many runs in one program."""

from saltus.papers.features.training import watch
from saltus.papers.features.training.classifier import train_classes, train_classifier
from saltus.papers.features.training.denoiser import train_denoiser
from saltus.papers.features.training.sampled import train_sampled

__all__ = ["train_classes", "train_classifier", "train_denoiser", "train_sampled", "watch"]
