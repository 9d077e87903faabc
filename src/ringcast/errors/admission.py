"""A declared stream, or a subscriber with a deadline, that was not let in."""

from __future__ import annotations

from ringcast.errors.base import RingcastError


class AdmissionRefused(RingcastError):
    """A deadline could not be kept: this one's or, with it, another's. `reasons` say whose, by how much, and what takes
    longest; `fits` what would be let in."""

    def __init__(self, what: str, reasons: tuple[str, ...], fits: tuple[str, ...] = ()) -> None:
        self.what = what
        self.reasons = reasons
        self.fits = fits
        would = f"; would fit: {'; or '.join(fits)}" if fits else ""
        super().__init__(f"{what} is not admitted: {'; '.join(reasons)}{would}")
