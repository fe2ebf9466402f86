# What a message keeps of its line: simdjson's document, what the strict pass has found, the template of the
# last call and the last _meta. Only message.pyx looks into it.

cimport fastrpc._core.simdjson as simdjson
from fastrpc._core.call cimport Call
from fastrpc._core.call_template cimport CallTemplate

cdef extern from *:
    """
    #define FASTRPC_LONGEST_META 1024

    struct FastrpcDocument {
        simdjson::dom::parser parser;
        simdjson::dom::element root, params, arguments, meta;
        fastrpc::Members argument;
        struct fastrpc_call fast;  // what the strict pass has found
        struct fastrpc_template pattern;  // of the last line that was learned
        char known_meta[FASTRPC_LONGEST_META];  // a _meta that was read before
        Py_ssize_t known_meta_size;
        int known_meta_era;
    };
    """
    cdef cppclass Inside "struct FastrpcDocument":
        simdjson.Parser parser
        simdjson.Element root
        simdjson.Element params
        simdjson.Element arguments
        simdjson.Element meta
        simdjson.Members argument
        Call fast
        CallTemplate pattern
        char* known_meta
        Py_ssize_t known_meta_size
        int known_meta_era
    Inside* new_document "new FastrpcDocument"() except +
    Py_ssize_t LONGEST_META "FASTRPC_LONGEST_META"
    void delete_document "delete "(Inside* document) noexcept
