"""Loggers as the originals' utilities give them: `get_logger` and `configure_logging`. Records go to standard
error, as `logging` writes them."""

from __future__ import annotations

import logging


def get_logger(name: str) -> logging.Logger:
    """Return the logger of this name."""
    return logging.getLogger(name)


def configure_logging(level: str | int = "INFO", **options: object) -> None:
    """Have records from this level on written to standard error, unless that has been configured. Other
    options have no effect."""
    logging.basicConfig(level=level)
