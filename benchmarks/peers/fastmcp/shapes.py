"""Peer: echo in the shapes of W12, with FastMCP: `python shapes.py SHAPE [--http PORT]`."""

import os
import sys

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from server import serve

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from python_shapes import app_of

if __name__ == "__main__":
    serve(app_of(sys.argv[1], FastMCP, Context, ToolError), sys.argv[2:])
