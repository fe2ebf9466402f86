/* What `fastrpc serve` lists: benchmarks/servers/descriptors.json, which build.py compiles in. */
#include "descriptors.h"

static const char JSON[] = {
#include "descriptors.inc"
};

yyjson_doc *describe_tools(void) { return yyjson_read(JSON, sizeof JSON, YYJSON_READ_NOFLAG); }
