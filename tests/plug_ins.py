"""Plug-ins as pip would leave them: a package, and beside it its metadata with the entry point."""

from __future__ import annotations

from pathlib import Path


def install(folder: Path, module: str, source: str, group: str, entry: str) -> None:
    """Put `source` into `folder` as a module (`package.module`, say) that says `entry` in the entry point `group`."""
    *packages, name = module.split(".")
    distribution, place = module.partition(".")[0], folder
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        place /= package
        place.mkdir()
        (place / "__init__.py").touch()
    (place / f"{name}.py").write_text(source)
    metadata = folder / f"{distribution}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
