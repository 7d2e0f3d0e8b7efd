"""The root of all commands."""

from __future__ import annotations

import sys

import click

from kafkaio._cli.command import SETTINGS, Root, common_options
from kafkaio._version import __version__


def _version(context: click.Context, parameter: click.Parameter, value: object) -> None:
    del parameter
    if value:
        sys.stdout.write(f"kafkaio {__version__}\n")
        context.exit()


root: Root = Root(
    "kafkaio",
    help="Tools of kafkaio, the Kafka client for asyncio.",
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and exit.",
        ),
        *common_options(),
    ],
    context_settings=SETTINGS,
    no_args_is_help=True,
)
