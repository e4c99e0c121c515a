"""The studies of the feature-learning paper; these files load nothing heavy until a study runs."""

from saltus.core.study import Paper, paper

FEATURES = paper(
    Paper(
        id="features",
        key="han2025feature",
        title="On the Feature Learning in Diffusion Models",
        authors="Han, Huang, Cao, Zou",
        year=2025,
        venue="International Conference on Learning Representations",
    )
)
