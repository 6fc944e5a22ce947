"""``laureate web``: the pages in a browser."""

import signal

import click

from laureate.cli._common import emit, json_option


@click.command()
@click.option("--port", default=8642, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address is for reading only.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in your browser.")
@json_option
def web(port: int, host: str, open_browser: bool, as_json: bool) -> None:
    """The board, the methods, the runs and the catalogue in a browser, live while a run goes on.

    On this machine only, unless --host says otherwise. Ctrl-C ends it, and a run that was started from the page.
    """
    from laureate.pages.server import make_server

    server = make_server(host, port)
    if as_json:
        emit({"url": server.url})
    else:
        click.echo(f"Laureate is at {server.url} (Ctrl-C ends it)")
    if open_browser:
        import webbrowser

        webbrowser.open(server.url)
    # `kill` ends it as Ctrl-C does: a run that was started from the page is stopped, not orphaned.
    # A server that a script put into the background ignores Ctrl-C, as then would its runs: no button could stop one.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        click.echo("", err=True)
    finally:
        server.server_close()
