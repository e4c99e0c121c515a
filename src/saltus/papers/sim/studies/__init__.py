"""The studies of the SIM paper; these files load nothing heavy until a study runs."""

from saltus.core.study import Paper, paper

SIM = paper(
    Paper(
        id="sim",
        key="yang2025dynamics",
        title="Dynamics of Concept Learning and Compositional Generalization",
        authors="Yang, Park, Lubana, Okawa, Hu, Tanaka",
        year=2025,
        venue="International Conference on Learning Representations",
    )
)
