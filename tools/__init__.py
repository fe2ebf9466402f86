"""The tools that fastrpc ships, importable as ``fastrpc.tools``. No module of ``fastrpc`` names them."""
