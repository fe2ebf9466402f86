# The side of a Message that is C++: simdjson's parser, the elements that it has found, what is remembered of
# earlier lines; and what can be read of a broken one.

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
        int known_meta_wire;
        bool known_meta_declares_tasks;
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
        int known_meta_wire
        bint known_meta_declares_tasks
    void* new_document "new FastrpcDocument"() except +
    Py_ssize_t LONGEST_META "FASTRPC_LONGEST_META"
    void delete_document "delete (FastrpcDocument*)"(void* document) noexcept

cdef extern from "broken_envelope.h":
    struct BrokenEnvelope "fastrpc_broken_envelope":
        const char* id
        Py_ssize_t id_size
        bint has_method
        bint has_outcome
    void read_broken_envelope "fastrpc::read_broken_envelope"(
        const char* line, Py_ssize_t size, BrokenEnvelope* found
    ) noexcept
