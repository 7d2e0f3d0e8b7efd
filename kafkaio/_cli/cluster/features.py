"""``kafkaio features``: the levels of the cluster's features."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import click

from kafkaio._cli.shell.command import DRY_RUN, YES, Group, asynchronous
from kafkaio._cli.shell.session import Session
from kafkaio._cli.text.exits import CommandFailed, Exit
from kafkaio._cli.text.output import Table

_COLUMNS: Final = ("feature", "level", "supported_min", "supported_max")
_Kind: TypeAlias = Literal["UPGRADE", "SAFE_DOWNGRADE", "UNSAFE_DOWNGRADE"]
_UPDATED: Final = ("feature", "level_before", "level")


features: Group = Group(
    "features", help="Describe, raise and lower the levels of features."
)


@features.command("describe")
@click.option("--broker", type=int, metavar="ID", help="Whom to ask; any by default.")
@asynchronous
async def _describe(session: Session, broker: int | None) -> None:
    """Show the levels in force, and those that a broker supports."""
    async with session.admin() as admin:
        found = await admin.describe_features(node_id=broker)
    rows: list[dict[str, object]] = []
    for name in sorted({*found.finalized, *found.supported}):
        level, supported = found.finalized.get(name), found.supported.get(name)
        rows.append(
            {
                "feature": name,
                "level": level.max_level if level else 0,
                "supported_min": supported.min_level if supported else None,
                "supported_max": supported.max_level if supported else None,
            }
        )
    document = {"features": rows, "epoch": found.finalized_epoch}
    session.show(document, Table(rows, _COLUMNS))


@features.command("upgrade")
@click.argument("update", nargs=-1, required=True, metavar="NAME=LEVEL...")
@DRY_RUN
@YES
@asynchronous
async def _upgrade(
    session: Session, update: tuple[str, ...], *, dry_run: bool, yes: bool
) -> None:
    """Raise levels; most can never be lowered again.

    Example: kafkaio features upgrade metadata.version=25 --dry-run
    """
    await _update(session, update, "UPGRADE", dry_run=dry_run, yes=yes)


@features.command("downgrade")
@click.argument("update", nargs=-1, required=True, metavar="NAME=LEVEL...")
@click.option("--unsafe", is_flag=True, help="Even if metadata is lost by that.")
@DRY_RUN
@YES
@asynchronous
async def _downgrade(
    session: Session,
    update: tuple[str, ...],
    *,
    unsafe: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Lower levels; 0 switches a feature off."""
    kind: _Kind = "UNSAFE_DOWNGRADE" if unsafe else "SAFE_DOWNGRADE"
    await _update(session, update, kind, dry_run=dry_run, yes=yes)


async def _update(
    session: Session,
    texts: tuple[str, ...],
    kind: _Kind,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    from kafkaio.admin import FeatureUpdate, FeatureUpgradeType

    levels = _levels(texts)
    async with session.admin() as admin:
        before = (await admin.describe_features()).finalized
        had = {name: it.max_level for name, it in before.items()}
        rows = [
            {"feature": name, "level_before": had.get(name, 0), "level": level}
            for name, level in levels.items()
        ]
        if not dry_run:
            effects = [
                f"{n}: level {had.get(n, 0)} -> {it}" for n, it in levels.items()
            ]
            session.confirm(effects, yes=yes)
        update = FeatureUpgradeType(kind)
        await admin.update_features(
            {name: FeatureUpdate(level, update) for name, level in levels.items()},
            validate_only=dry_run,
        )
    document = {"features": rows, "executed": not dry_run}
    session.show(document, Table(rows, _UPDATED))


def _levels(texts: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in texts:
        name, _, level = text.partition("=")
        if not name or not level.isdecimal():
            message = f"{text!r} is not NAME=LEVEL, such as metadata.version=25"
            raise CommandFailed(message, Exit.USAGE)
        if name in found:
            raise CommandFailed(f"{name} is there twice", Exit.USAGE)
        found[name] = int(level)
    return found
