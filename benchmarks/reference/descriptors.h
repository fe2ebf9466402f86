/* The descriptors of the agent's tools: what tools/list answers with. */
#ifndef REFERENCE_DESCRIPTORS_H
#define REFERENCE_DESCRIPTORS_H

#include "yyjson.h"

/* Return {"tools":[...]} as one immutable document: one block, faster to write than a tree of parts.
 * NULL when there is no memory. */
yyjson_doc *describe_tools(void);

#endif
