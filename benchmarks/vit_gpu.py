"""One visit to a GPU: speed of the transformer, then its trainings on CIFAR-10 with spectra of every head.

    python benchmarks/packed.py .packed-cifar10              # where there is a network
    python benchmarks/vit_gpu.py --data .packed-cifar10 --out FOLDER --seconds 180

Parts, in this order, each written to FOLDER when it ends, so that what ends early loses one part only:

- speed: ours by each way to do attention, PyTorch eager and compiled, the matrix rate, spectra;
- adam, sgd: the paper's descents, their schedules stretched over the epochs that fit;
- scales: initial values times 1, .5, .2, .1, by Adam, the same seed and order of the data.

Needs jax and numpy; PyTorch where it is to be compared with.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", ".6")  # PyTorch needs its part of the device

import environment
import light
import numpy as np

light.open_saltus()

import vit_case  # noqa: E402
from vit import Peer, best_of, ours, summary  # noqa: E402

BEGAN = time.perf_counter()
# Of the seconds left when speed is known: how they are dealt out.
SHARES = {"adam": 0.5, "sgd": 0.22, "scales": 0.28}
WARM_EPOCHS, EPOCHS = 15, 500  # of the paper; the warm-up keeps its part of however many epochs fit
RATES = {"adam": 1e-4, "sgd": 0.3}
SCALES = (1.0, 0.5, 0.2, 0.1)
LOOKS = {"adam": 56, "sgd": 40, "scales": 24}


def gone() -> float:
    """Seconds since the beginning."""
    return time.perf_counter() - BEGAN


def say(*words: Any) -> None:
    print(f"[{gone():6.1f} s]", *words, file=sys.stderr, flush=True)


def tables(folder: Path | None, quick: bool) -> tuple[Any, Any, str]:
    """Training and test images on the host, and what they are."""
    from types import SimpleNamespace

    from saltus.descent.network import images

    if folder is None:
        made, more = vit_case.made_up(192), vit_case.made_up(64, 1)
        held = SimpleNamespace(x=made["x"], y=made["y"], test_x=more["x"], test_y=more["y"])
        return (*images(held), "made-up images")
    import packed

    found = packed.load(folder)
    held = SimpleNamespace(
        x=found["train_x"], y=found["train_y"], test_x=found["test_x"], test_y=found["test_y"]
    )
    train, test = images(held, 192 if quick else None, 64 if quick else None)
    return train, test, f"CIFAR-10, the first {len(train)} training and {len(test)} test images"


class Visit:
    """What is asked for, what was found, and where it is written."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.quick, self.device, self.out, self.seconds = asked.quick, asked.device, asked.out, asked.seconds
        self.out.mkdir(parents=True, exist_ok=True)
        self.found: dict[str, Any] = {"environment": environment.environment(self.device)}
        self.rate, self.way = 0.0, "plain"

    def write(self) -> None:
        (self.out / "visit.json").write_text(json.dumps(self.found, indent=1) + "\n")

    def left(self) -> float:
        return self.seconds - gone()

    def speed(self, train: Any, peers: bool) -> None:
        """Images a second of everybody, and seconds of the spectra."""
        from vit_ours import Ours, matrix_rate, model_for, plain_spectra, spectra

        steps = 2 if self.quick else 30
        data = {"x": train.x[:8192], "y": train.y[:8192]}
        with tempfile.TemporaryDirectory(prefix="saltus-vit-") as folder:
            params = vit_case.save(Path(folder), self.quick, data, train.mean, train.std)
            peer = (
                Peer(Path(folder), self.device, steps, ("compile",) if self.quick else ()) if peers else None
            )
            try:
                self.found["matrix_rate"] = matrix_rate(self.quick or self.device == "cpu")
                ways = ("kernel", "cudnn") if self.device == "gpu" else ("plain",)
                self.found["ours"] = ours(self.device, ways, self.quick, train, params, steps)
                if best_of(self.found["ours"]) is None:
                    self.found["ours"] |= ours(self.device, ("plain",), self.quick, train, params, steps)
                self.write()
                say("ours are timed")
                self.found["torch"] = peer.times() if peer else {}
            finally:
                if peer:
                    peer.end()
        self.way = best_of(self.found["ours"]) or "plain"
        self.rate = self.found["ours"][self.way]["images_per_second"]
        self.found["way"] = self.way
        self.write()
        print("\n".join(summary(self.found, self.quick)), flush=True)
        mine = Ours(model_for(self.device, self.way, self.quick), train, vit_case.BATCH[self.quick])
        mine.run(2)
        repeats = 1 if self.quick else 2
        self.found["spectra"] = spectra(mine.carry.params, mine.start, ("gram",), repeats)
        self.found["plain_spectra"] = plain_spectra(mine.carry.params, mine.start, 1 if self.quick else 4)
        say("spectra", self.found["spectra"], self.found["plain_spectra"])
        self.write()

    def epochs(self, seconds: float, runs: int, looks: int, points: int) -> int:
        """How many epochs of each of `runs` fit, looks included, a tenth kept in hand."""
        a_look = self.found.get("spectra", {}).get("gram")
        a_look = (a_look if isinstance(a_look, float) else 1.0) + 4096 / max(self.rate, 1) + 0.05
        training = 0.9 * seconds - runs * looks * a_look
        return max(int(training * self.rate / points / runs), 1)

    def descend(self, name: str, train: Any, test: Any, seconds: float) -> None:
        """One part's trainings, and what was seen of them."""
        from vit_ours import model_for

        from saltus import probe
        from saltus.descent import adam, at, network, rate, sgd

        scales = SCALES if name == "scales" else (1.0,)
        looks = 6 if self.quick else LOOKS[name]
        batch = vit_case.BATCH[self.quick]
        per_epoch = len(train) // batch
        epochs = 1 if self.quick else min(self.epochs(seconds, len(scales), looks, len(train)), EPOCHS)
        total = epochs * per_epoch
        kind, base = (sgd, RATES["sgd"]) if name == "sgd" else (adam, RATES["adam"])
        schedule = rate.warm_cosine(base, warm=max(total * WARM_EPOCHS // EPOCHS, 1), total=total)
        how = kind(schedule, batch=batch, epochs=epochs)
        model = model_for(self.device, self.way, self.quick)
        say(name, f"{epochs} epochs of {per_epoch} steps, scales {scales}, {seconds:.0f} s")
        arrays: dict[str, list[np.ndarray]] = {}
        row: dict[str, Any] = {"epochs": epochs, "how": repr(how), "model": repr(model), "scales": []}
        ends = gone() + seconds
        for number, scale in enumerate(scales):
            # Each of several runs may use what is left of its share.
            until = gone() + (ends - gone()) / (len(scales) - number)
            began = time.perf_counter()
            found = network.fit(
                model, train, how, test=test, watch=[probe.head_spectra(method="gram")],
                at=at.log(looks), scales=(scale,), evaluate=2048, every=max(total // 40, 1),
                stop=lambda until=until: gone() > until,
            )  # fmt: skip
            took = time.perf_counter() - began
            values = {k: v[0] for k, v in found.seen.items()}
            values |= {"steps": found.steps, "epoch": found.epoch}
            values |= {f"start_{k}": np.asarray(v) for k, v in probe.head_products(found.start).items()}
            for key, value in values.items():
                arrays.setdefault(key, []).append(
                    value.astype(np.float32) if value.dtype.kind == "f" else value
                )
            row["scales"].append(
                {
                    "scale": scale, "seconds": took, "steps": found.step, "of": total,
                    "diverged_at": int(found.diverged_at[0]),
                    **{k: float(v[-1]) for k, v in values.items() if k.startswith(("loss", "accuracy"))},
                }
            )  # fmt: skip
            say(name, row["scales"][-1])
            self.found[name] = row
            self.write()
            self._arrays(name, arrays)

    def _arrays(self, name: str, arrays: dict[str, list[np.ndarray]]) -> None:
        """One file of a part: its runs stacked as far as the shortest was looked at."""
        least = min(len(steps) for steps in arrays["steps"])
        whole = {k: [v if k.startswith("start_") else v[:least] for v in each] for k, each in arrays.items()}
        np.savez_compressed(self.out / f"{name}.npz", **{k: np.stack(v) for k, v in whole.items()})


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--data", type=Path, help="what packed.py wrote; made-up images without it")
    options.add_argument("--seconds", type=float, default=180, help="for everything, start included")
    options.add_argument("--parts", nargs="*", default=["speed", "adam", "sgd", "scales"])
    options.add_argument("--device", choices=("cpu", "gpu"), default="gpu")
    options.add_argument("--no-torch", action="store_true")
    options.add_argument("--quick", action="store_true", help="does it run; its numbers mean nothing")
    asked = options.parse_args()
    visit = Visit(asked)
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(tables, asked.data, asked.quick)
        import vit_ours  # noqa: F401  (its imports while the images are opened)

        train, test, about = reading.result()
    visit.found["data"] = about
    say(about)
    parts = [p for p in ("speed", "adam", "sgd", "scales") if p in asked.parts]
    failed = False
    for number, name in enumerate(parts):
        try:
            if name == "speed":
                visit.speed(train, not asked.no_torch)
                continue
            rest = sum(SHARES[p] for p in parts[number:])
            visit.rate = visit.rate or 30_000.0
            visit.descend(name, train, test, (visit.left() - 4) * SHARES[name] / rest)
        except Exception as error:
            traceback.print_exc()
            visit.found[f"{name} failed"] = f"{type(error).__name__}: {str(error)[:2000]}"
            failed = True
        visit.found[f"{name}, ended at"] = gone()
        visit.write()
    say("done")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
