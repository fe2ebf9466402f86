"""Peer: echo in the shapes of W12, with the official Python SDK: `python shapes.py SHAPE [--http PORT]`."""

import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from server import serve

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from python_shapes import app_of

if __name__ == "__main__":
    serve(app_of(sys.argv[1], MCPServer, Context, ToolError), sys.argv[2:])
