"""The SGD of the SIM figures: what is trained (`Protocol`) and its trajectories over seeds (`train`)."""

from saltus.papers.sim.training.protocol import Protocol, protocol
from saltus.papers.sim.training.runs import PATHS, train

__all__ = ["PATHS", "Protocol", "protocol", "train"]
