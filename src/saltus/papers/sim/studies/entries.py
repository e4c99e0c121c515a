"""Figure 4: which entries of the Jacobian are major, minor and irrelevant, and what that says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saltus._lazy import jax, jnp, np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers import sim

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim

SHIFT = 1e-3  # of an entry; the output is linear in it, so only rounding limits the difference
MOVES = 1e-9


@study(
    "sim/fig4",
    cites="yang2025dynamics",
    figure="4",
    cost="6 s on two cores",
    checks=(
        "major and minor entries move the output at x̂, irrelevant ones do not (control: one concept fewer)",
        "group p holds the minor entries that move the output at centre p (control: groups shifted by one)",
        "what they move is what automatic differentiation says (control: the irrelevant entries')",
        "irrelevant entries leave the loss at x̂ alone along the flow (control: minor entries)",
    ),
)
@dataclass(frozen=True)
class EntriesMap:
    """Only major and minor entries of the Jacobian move the output at x̂.

    The map is drawn from the classification the code works with, and each cell of it is tested: an entry and
    its mirror image are moved in the model, from many Jacobians, and the outputs compared.
    """

    dim: int = setting(6, "dimension d, the side of the map", low=2, high=24)
    concepts: int = setting(3, "concepts s", low=1)
    others: tuple[tuple[int, int], ...] = setting(
        ((2, 2), (3, 2), (4, 3), (5, 5), (8, 4)), "further pairs d, s put to the same tests", low=1
    )
    seeds: int = setting(32, "Jacobians of each size", low=1)
    base: int = setting(0, "key that all seeds share", low=0, high=2**32 - 1)

    def check(self) -> None:
        for d, s in self.sizes():
            if not 1 <= s <= d:
                raise BadInput(f"{s} concepts do not fit in dimension {d}; give d, s with s at most d")

    def sizes(self) -> list[tuple[int, int]]:
        return list(dict.fromkeys([(self.dim, self.concepts), *self.others]))

    def run(self) -> xarray.Dataset:
        """Every pair of entries of every size, in one long table [entry].

        `kind` and `in_group` as classified, `blind_kind` with one concept fewer, `moves` [seed] the output at
        x̂ by finite differences, `slope` [seed] by differentiation, `moves_centre` [concept], `pull` [seed]:
        by how much it would change the loss at x̂ at a moment of the flow.
        """
        tables = [self.one_size(d, s) for d, s in self.sizes()]
        data = xr.concat(tables, "entry", join="outer", fill_value={"in_group": False, "moves_centre": 0.0})
        for name, words in (
            ("moves", "change of the output at x̂ per change of the entry and its mirror image"),
            ("slope", "the same by automatic differentiation"),
            ("moves_centre", "change of the output at each training centre"),
            ("pull", "slope of the loss at x̂ along the entry at a moment of the flow"),
            ("kind", "0 irrelevant, 1 major, 2 minor"),
            ("blind_kind", "the same with one concept fewer"),
            ("d", "dimension"),
            ("s", "concepts"),
            ("row", "row of the entry, from 0"),
            ("col", "column of the entry, from 0"),
            ("in_group", "whether it belongs to the concept's group"),
        ):
            data[name].attrs.update(long_name=words, units="1")
        return data

    def one_size(self, d: int, s: int) -> xarray.Dataset:
        from saltus.papers.sim import symmetric
        from saltus.papers.sim.law import two_layer

        U = symmetric.starts(self.seeds, d, start="gaussian", scale=0.3, base=self.base)
        mu = 1.0 + 0.5 * np.arange(s)
        world = sim.World(tuple(mu), 0.05, dim=d)
        a, target = world.second_moment(), np.pad(mu, (0, d - s))
        known, blind = two_layer.entries(d, s), two_layer.entries(d, s - 1)
        row, col = np.triu_indices(d)
        seeds, entry = np.arange(len(U)), np.arange(len(row))
        W, shift = U @ U.swapaxes(1, 2), np.zeros((len(row), d, d))
        shift[entry, row, col] = shift[entry, col, row] = SHIFT
        moved = W[:, None] + shift

        def change(z: Any) -> Any:
            after = np.asarray(two_layer.output(moved, z))
            return np.linalg.norm(after - np.asarray(two_layer.output(W, z))[:, None], axis=-1) / SHIFT

        # Differentiation and the flow once, on the map that is drawn: each size costs its own compilation.
        slope = pull = np.full((len(row), len(U)), np.nan)
        if (d, s) == self.sizes()[0]:
            slope, pull = self.differentiated(U, a, target, W, shift / SHIFT)
        centres = [change(target * (np.arange(d) == p)).mean(0) for p in range(s)]
        return xr.Dataset(
            {
                "kind": ("entry", known.kind[row, col]),
                "blind_kind": ("entry", blind.kind[row, col]),
                "in_group": (("entry", "concept"), known.group[row, col]),
                "moves": (("entry", "seed"), change(target).T),
                "slope": (("entry", "seed"), slope),
                "pull": (("entry", "seed"), pull),
                "moves_centre": (("entry", "concept"), np.stack(centres, 1)),
                "d": ("entry", np.full(len(row), d)),
                "s": ("entry", np.full(len(row), s)),
                "row": ("entry", row),
                "col": ("entry", col),
            },
            coords={"seed": seeds, "concept": np.arange(1, s + 1)},
        )

    def differentiated(self, U: Any, a: Any, target: Any, W: Any, unit: Any) -> tuple[Any, Any]:
        """How fast each entry moves the output at W, and the loss at a moment of the flow [entry, seed]."""
        from saltus.papers.sim.law import two_layer

        late = two_layer.gram(two_layer.flow(U, a, np.asarray([0.0, 1.5]))[:, 1])

        def output(part: Any, W: Any) -> Any:
            return two_layer.output(W + jnp.einsum("e,eij->ij", part, unit), target)

        def loss(part: Any, W: Any) -> Any:
            return two_layer.loss_at(W + jnp.einsum("e,eij->ij", part, unit), target)

        zero = jnp.zeros(len(unit))
        slope = jax.jit(jax.vmap(jax.jacobian(output), in_axes=(None, 0)))(zero, W)
        pull = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0)))(zero, late)
        return np.linalg.norm(np.asarray(slope), axis=1).T, abs(np.asarray(pull)).T

    def law(self, record: xarray.Dataset) -> None:
        return None

    def claims(self, record: xarray.Dataset, law: None) -> Iterator[Claim]:
        from saltus.papers.sim.law.two_layer import IRRELEVANT, MINOR

        moves, kind = record.moves.values > MOVES, record.kind.values
        right = moves == (kind != IRRELEVANT)[:, None]
        wrong = moves == (record.blind_kind.values != IRRELEVANT)[:, None]
        yield claim.above(
            "classification",
            "An entry moves the output at x̂ exactly if it is classified major or minor (share of entries).",
            stats.share(right.all(1)),
            0.95,
            control=("classified with one concept fewer", stats.share(wrong.all(1))),
        )
        minor = kind == MINOR
        here = np.arange(1, int(record.sizes["concept"]) + 1) <= record.s.values[minor][:, None]
        stirs = record.moves_centre.values[minor] > MOVES
        group = record.in_group.values[minor]
        other = _shifted(group, record.s.values[minor])
        yield claim.above(
            "groups",
            "A minor entry moves the output at centre p exactly if it is in group p (share of pairs).",
            stats.share((stirs == group)[here]),
            0.95,
            control=("groups shifted by one", stats.share((stirs == other)[here])),
        )
        relevant = kind != IRRELEVANT
        main = np.isfinite(record.slope.values).all(1)
        seen, size = (record[name].values[main & relevant] for name in ("moves", "slope"))
        yield claim.below(
            "differentiation",
            "Finite differences of the model agree with its derivative (relative gap, largest).",
            stats.worst(abs(seen - size) / size),
            1e-8,
            control=(
                "the derivative along the next entry",
                stats.worst(abs(seen - np.roll(size, 1, 0)) / size),
            ),
        )
        yield claim.below(
            "irrelevant-on-the-way",
            "Along the flow, no irrelevant entry changes the loss at x̂ (slope, largest).",
            stats.worst(record.pull.values[main & ~relevant]),
            1e-12,
            control=("minor entries", stats.worst(record.pull.values[main & minor])),
        )

    def draw(self, record: xarray.Dataset, law: None) -> Figure:
        from saltus.papers.sim.studies import _entries_picture

        return _entries_picture.entries(self, record)


def _shifted(group: Any, s: Any) -> Any:
    """Each entry's groups moved on by one among the s of its size; group [entry, concept], s [entry]."""
    column = np.arange(group.shape[1])
    from_ = np.where(column < s[:, None], (column - 1) % s[:, None], column)
    return np.take_along_axis(group, from_, axis=1)
