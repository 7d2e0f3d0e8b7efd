"""``kafkaio features``: the levels of the cluster's features."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import click

from kafkaio._cli.shell.command import DRY_RUN, YES, Group, asynchronous
from kafkaio._cli.shell.session import CommandSession
from kafkaio._cli.text.document import BOOLEAN, INTEGER, TEXT, Document, rows
from kafkaio._cli.text.exits import CommandFailed, Exit

_FEATURES: Final = Document(
    features=rows(
        feature=TEXT,
        level=INTEGER,
        supported_min=INTEGER.or_null,
        supported_max=INTEGER.or_null,
    ),
    # The epoch of the levels in force (KIP-584); null if none is.
    epoch=INTEGER.or_null,
)
_UPDATED: Final = Document(
    features=rows(feature=TEXT, level_before=INTEGER, level=INTEGER), executed=BOOLEAN
)
_Kind: TypeAlias = Literal["UPGRADE", "SAFE_DOWNGRADE", "UNSAFE_DOWNGRADE"]


features: Group = Group(
    "features", help="Describe, raise and lower the levels of features."
)


@features.command("describe", prints=_FEATURES)
@click.option("--broker", type=int, metavar="ID", help="Whom to ask; any by default.")
@asynchronous
async def _describe(session: CommandSession, broker: int | None) -> None:
    """Show the levels in force, and those that a broker supports."""
    async with session.admin() as admin:
        found = await admin.describe_features(node_id=broker)
    levels: list[dict[str, object]] = []
    for name in sorted({*found.finalized, *found.supported}):
        # A feature without a finalized level is switched off, which is level 0.
        level, supported = found.finalized.get(name), found.supported.get(name)
        levels.append(
            {
                "feature": name,
                "level": level.max_level if level else 0,
                "supported_min": supported.min_level if supported else None,
                "supported_max": supported.max_level if supported else None,
            }
        )
    session.show(_FEATURES, features=levels, epoch=found.finalized_epoch)


@features.command("upgrade", prints=_UPDATED)
@click.argument("update", nargs=-1, required=True, metavar="NAME=LEVEL...")
@DRY_RUN
@YES
@asynchronous
async def _upgrade(
    session: CommandSession, update: tuple[str, ...], *, dry_run: bool, yes: bool
) -> None:
    """Raise levels; most can never be lowered again.

    Example: kafkaio features upgrade metadata.version=25 --dry-run
    """
    await _update(session, update, "UPGRADE", dry_run=dry_run, yes=yes)


@features.command("downgrade", prints=_UPDATED)
@click.argument("update", nargs=-1, required=True, metavar="NAME=LEVEL...")
@click.option("--unsafe", is_flag=True, help="Even if metadata is lost by that.")
@DRY_RUN
@YES
@asynchronous
async def _downgrade(
    session: CommandSession,
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
    session: CommandSession,
    texts: tuple[str, ...],
    kind: _Kind,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    from kafkaio.admin import FeatureUpdate, FeatureUpgradeType

    levels = _levels(texts)
    async with session.admin() as admin:
        # The question and the rows have both levels: most upgrades cannot be undone.
        before = (await admin.describe_features()).finalized
        had = {name: it.max_level for name, it in before.items()}
        updates = [
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
    session.show(_UPDATED, features=updates, executed=not dry_run)


def _levels(texts: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in texts:
        name, _, level = text.partition("=")
        if not name or not level.isdecimal():
            message = f"{text!r} is not NAME=LEVEL, such as metadata.version=25"
            raise CommandFailed(message, Exit.USAGE)
        if name in found:
            raise CommandFailed(f"{name} occurs twice", Exit.USAGE)
        found[name] = int(level)
    return found
