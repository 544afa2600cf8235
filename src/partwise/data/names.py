"""What users read of factors and their number."""


def factor_names(order: int) -> tuple[str, ...]:
    """W and H of a matrix; A1 to Ad of data with d modes."""
    return ("W", "H") if order == 2 else tuple(f"A{mode + 1}" for mode in range(order))


def matrix_only(what: str, order: int) -> str | None:
    """None for a matrix, else the sentence that something is not made for X."""
    return None if order == 2 else f"{what} is for matrices, and X has {order} modes"
