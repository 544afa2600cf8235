"""What was found, as a scientist may quote it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..data.names import listed
from .rule import STABLE, Window

if TYPE_CHECKING:
    from .selected import RankSelection

POISSON = 1.2  # variance of counts over their mean, from which on they are said to vary more than Poisson
NEXT = 2  # ranks from the best of which it is said that they are within noise of it
WIDE = 5  # ranks in a window of which something is said


# -- pieces ----------------------------------------------------------------------------------------------


def parts(number: int) -> str:
    return "1 part" if number == 1 else f"{number} parts"


def is_stable(found: RankSelection) -> bool:
    return found.row(found.rank).weakest >= STABLE


def within_noise(found: RankSelection) -> str:
    """Neighbours of the best rank that predict as well, to one standard error."""
    close = [row for row in found.table if row.rank != found.best and abs(row.rank - found.best) <= NEXT]
    near = [row for row in close if 0 < row.excess <= row.excess_se < math.inf]
    if not near:
        return ""
    return f", and {listed(str(row.rank) for row in near)} {'is' if len(near) == 1 else 'are'} within noise of it"


def came_again(found: RankSelection) -> str:
    """How many parts are found in every start, or that those do which end as low as the best."""
    stability = found.stability
    if stability is None:
        return "its parts were not compared"
    if is_stable(found) and min(stability.found) < stability.n_runs:
        return (
            f"parts come again in starts that end as low as the best (weakest silhouette "
            f"{found.row(found.rank).weakest:.2f}), if not in all {stability.n_runs}"
        )
    return stability.verdict.removesuffix(".")


def n_differ(found: RankSelection) -> int:
    """Parts that too few of the starts find."""
    return 0 if found.stability is None else found.stability.n_weak


# -- the whole -------------------------------------------------------------------------------------------


def selected(found: RankSelection) -> str:
    """All there is to say."""
    if found.status == "interrupted" and not compared(found):
        return interrupted(found)
    cut_short = "Interrupted in the last fit, that of all of X." if found.status == "interrupted" else ""
    return " ".join(filter(None, [cut_short, headline(found), *(remark(found) for remark in REMARKS)]))


def compared(found: RankSelection) -> bool:
    """Whether parts of random starts were compared to the end; not known where there is one part."""
    examined = Window(found.window, found.near).examined
    done = [found.row(rank).weakest == found.row(rank).weakest for rank in examined]  # else NaN
    return is_stable(found) or (all(done) and bool(done))


def headline(found: RankSelection) -> str:
    """The number of parts, and why."""
    return next(case(found) for applies, case in CASES if applies(found))


def interrupted(found: RankSelection) -> str:
    tried = found.ranks[-1]
    return (
        f"Interrupted after {parts(tried)}: of the ranks tried by then, {found.best} predicts best. Whether its parts "
        "come again was not looked at to the end; go on from a checkpoint, or ask for fewer ranks."
    )


def all_tried(found: RankSelection) -> str:
    return f"{parts(found.rank)}: no other number was tried."


def one_part(found: RankSelection) -> str:
    return "1 part: nothing beyond the row and column sums predicts the entries left out."


def fewest(found: RankSelection) -> str:
    return f"{parts(found.rank)}, the fewest tried: more of them do not predict the entries left out any better."


def endless(found: RankSelection) -> str:
    most, allowed = found.candidates[-1], math.prod(found.shape) // max(found.shape)
    advice = "ask for more ranks, or take" if most < allowed else "more could be X itself, so take"
    most_stable = f"{parts(found.rank)} are the most that come again"
    stable = most_stable if is_stable(found) else "no number of them comes again"
    return (
        f"No end in sight: the held-out error still falls at {most} parts, the most tried. Of those that predict about "
        f"as well, {stable}; {advice} as many parts as you can read ({found.rank} are taken here)."
    )


def agreed(found: RankSelection) -> str:
    return (
        f"{parts(found.rank)}: the held-out error is lowest at {found.best}{within_noise(found)}; {came_again(found)}."
    )


def fewer(found: RankSelection) -> str:
    row = found.row(found.rank)
    rest = f", by {100 * row.excess / found.drop:.2g}% of its drop," if 0 < found.drop < math.inf else ","
    falling = f"the held-out error goes on falling to {found.best}{rest} but"
    if 0 < row.excess <= row.excess_se < math.inf:
        falling = f"the held-out error is lowest at {found.best}, but within noise of that at {found.rank}, and"
    above = next(row.rank for row in found.table if row.rank > found.rank and row.weakest < STABLE)
    return f"{parts(found.rank)}: {falling} from {above} on parts differ from start to start; {came_again(found)}."


def unstable(found: RankSelection) -> str:
    why = "the data do not say which (not unique)"
    taken = "" if found.rank == found.best else f"; {found.rank} predict as well, to 1% of the drop, and are taken here"
    differ = n_differ(found)
    some = f"{differ} of them differ{'s' if differ == 1 else ''}"
    told = some if found.rank == found.best and differ else "parts differ"
    return f"{parts(found.best)} predict best, but {told} from start to start: {why}{taken}."


CASES = (
    (lambda found: len(found.table) == 1, all_tried),
    (lambda found: found.rank == 1, one_part),
    (lambda found: found.best == found.table[0].rank, fewest),
    (lambda found: found.no_end, endless),
    (lambda found: is_stable(found) and found.rank == found.best, agreed),
    (is_stable, fewer),
    (lambda found: True, unstable),
)


def overdispersed(found: RankSelection) -> str | None:
    if not found.dispersion > POISSON:
        return None
    return (
        f"Counts vary more than Poisson: {found.dispersion:.2g} times their mean, so that thinning and likelihood "
        "criteria would see too many parts."
    )


def wide(found: RankSelection) -> str | None:
    if len(found.window) < WIDE or found.no_end or found.rank == 1:
        return None
    return f"From {found.window[0]} to {found.best} parts predict about as well (within 5% of the drop)."


REMARKS = (wide, overdispersed)
