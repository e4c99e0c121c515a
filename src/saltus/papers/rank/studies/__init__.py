"""The studies of the rank paper; these files load nothing heavy until a study runs."""

from saltus.core.study import Paper, paper

RANK = paper(
    Paper(
        id="rank",
        key="boixadsera2023rank",
        title="Transformers Learn Through Gradual Rank Increase",
        authors="Boix-Adserà, Littwin, Abbe, Bengio, Susskind",
        year=2023,
        venue="Advances in Neural Information Processing Systems",
    )
)
