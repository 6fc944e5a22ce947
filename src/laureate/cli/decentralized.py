"""``laureate decentralized``: training among peers, one process per node."""

import subprocess
import sys

import click

# The launcher belongs to the methods' room, which loads jax: a process of its own keeps that out of this one.
LAUNCH = "import sys; from laureate.decentralized.launch import main; sys.exit(main(sys.argv[1:]))"


@click.group()
def decentralized() -> None:
    """Train among peers, one process per node (see laureate.decentralized)."""


@decentralized.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-n", "--nodes", default=4, show_default=True, help="How many processes, one a node.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def launch(nodes: int, script: str, arguments: tuple[str, ...]) -> None:
    """Start SCRIPT once per node on this machine, over real sockets, and say how to start it on several.

    The script calls laureate.decentralized.connect() first. If one node fails, the others are stopped.
    """
    if nodes < 1:
        raise click.BadParameter(f"must be >= 1; got {nodes}.", param_hint="--nodes")
    done = subprocess.run([sys.executable, "-c", LAUNCH, "-n", str(nodes), script, *arguments], check=False)
    sys.exit(done.returncode)
