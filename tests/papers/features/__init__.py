"""The feature-learning paper."""
