"""Functions of the originals' utilities. Records of these loggers go to standard error, as `logging` writes
them."""

from __future__ import annotations

import logging


def get_logger(name: str) -> logging.Logger:
    """Return the logger of this name."""
    return logging.getLogger(name)


def configure_logging(level: str | int = "INFO", **options: object) -> None:
    """Have records from this level on written to standard error, unless that has been configured. Other
    options have no effect."""
    logging.basicConfig(level=level)


def format_description_with_responses(
    base_description: str, responses: object = None, parameters: object = None, request_body: object = None
) -> str:
    """Return the description of a tool of an HTTP API unchanged. FastMCP adds the parameters and responses,
    which are in the tool's schemas here."""
    return base_description
