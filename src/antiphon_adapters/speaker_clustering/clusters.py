"""Tells voices apart: average-linkage clustering of voice prints, within bounds on memory. It hears no sound.

The distance of two prints is one less their cosine; that of two clusters is the mean over all pairs, which for prints
of length one is one less the product of the clusters' means. So clusters can be joined by their means and sizes alone.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_SPEAKERS = 32

BLOCK_PRINTS = 2048
"""How many prints are compared each with each: 8 minutes of speech, 16 MB."""

BLOCK_GROUPS = MAX_SPEAKERS
"""How many groups a block is cut into before blocks are compared with each other."""


@dataclass(frozen=True, slots=True)
class SpeakerCount:
    """When to stop joining clusters: none goes below `fewest`; above `most`, any two are joined.

    In between those are joined whose voices are nearer than `threshold`, a cosine distance.
    """

    fewest: int
    most: int
    threshold: float


def cluster(prints: "NDArray[np.float32]", sure: "NDArray[np.bool_]", count: SpeakerCount) -> "NDArray[np.int64]":
    """Which cluster each print belongs to, numbered from 0; shape [n], of prints [n, 256].

    Those that are not `sure`, shape [n], found no cluster and go to the nearest, unless none is sure. Up to a block's
    prints the clusters are exact. Of more, each block is first cut into groups of the nearest.
    """
    import numpy as np

    sure = sure if sure.any() else np.ones_like(sure)
    clusters = _clusters(prints[sure], count)
    means, _ = _means(prints[sure], clusters)
    found = np.asarray(np.argmax(prints @ means.T, axis=1), np.int64)
    found[sure] = clusters
    return found


def _clusters(prints: "NDArray[np.float32]", count: SpeakerCount) -> "NDArray[np.int64]":
    import numpy as np

    groups = _groups(prints)
    means, sizes = _means(prints, groups)
    clusters = _joined(means, sizes, count)[groups]
    return np.asarray(np.unique(clusters, return_inverse=True)[1], np.int64)


def _means(
    prints: "NDArray[np.float32]", groups: "NDArray[np.int64]"
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """The mean print and the size of each group; the groups' numbers have no gap."""
    import numpy as np

    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    sums = np.add.reduceat(prints[order], np.cumsum(sizes) - sizes, dtype=np.float64)
    return sums / sizes[:, None], sizes.astype(np.float64)


def _groups(prints: "NDArray[np.float32]") -> "NDArray[np.int64]":
    import numpy as np

    found: list[NDArray[np.int64]] = []
    first = 0
    for start in range(0, len(prints), BLOCK_PRINTS):
        groups = _cut(prints[start : start + BLOCK_PRINTS])
        found.append(groups + first)
        first += int(groups.max()) + 1
    return np.concatenate(found)


def _cut(prints: "NDArray[np.float32]") -> "NDArray[np.int64]":
    """Join the nearest prints of a block until few groups are left; numbers without a gap, from 0."""
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(prints) <= BLOCK_GROUPS:
        return np.arange(len(prints))
    distances = np.maximum(1.0 - prints @ prints.T, 0.0)  # scipy's own cosines take many times as long
    tree = linkage(squareform(distances, checks=False), method="average")
    return np.asarray(np.unique(fcluster(tree, BLOCK_GROUPS, criterion="maxclust"), return_inverse=True)[1], np.int64)


def _joined(means: "NDArray[np.float64]", sizes: "NDArray[np.float64]", count: SpeakerCount) -> "NDArray[np.int64]":
    """Join the nearest two of the groups for as long as `count` says so; the result numbers the cluster of each."""
    import numpy as np

    means, sizes = means.copy(), sizes.copy()
    cluster_of = np.arange(len(sizes))
    distances = 1.0 - means @ means.T
    np.fill_diagonal(distances, np.inf)
    for left in range(len(sizes), max(count.fewest, 1), -1):
        one, other = sorted(divmod(int(np.argmin(distances)), len(sizes)))
        if distances[one, other] > count.threshold and left <= count.most:
            break
        together = sizes[one] + sizes[other]
        means[one] = (sizes[one] * means[one] + sizes[other] * means[other]) / together
        sizes[one] = together
        cluster_of[cluster_of == other] = one
        gone = np.isinf(distances[one]) | np.isinf(distances[other])
        fresh = np.where(gone, np.inf, 1.0 - means @ means[one])
        distances[one], distances[:, one] = fresh, fresh
        distances[other], distances[:, other] = np.inf, np.inf
    return cluster_of
