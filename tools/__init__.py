"""The tools that fastrpc ships, importable as ``fastrpc.tools``; nothing in ``fastrpc`` names them."""
