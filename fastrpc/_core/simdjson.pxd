# simdjson's DOM, as far as the message reader uses it, behind calls that cannot throw.
#
# The shim turns simdjson's result objects into plain C and adds the one thing its API does not offer:
# where in the line a value is. It takes that from the structural indexes of simdjson's first
# stage, one for each of { } [ ] : , and for the start of each scalar and string.

from libc.stdint cimport int64_t, uint64_t

from fastrpc._core.slices cimport Slice

cdef extern from *:
    """
    #include "simdjson.h"
    #include "numbers.h"
    #include <cstring>

    namespace fastrpc {

    namespace dom = simdjson::dom;

    static inline int parse(dom::parser &parser, const char *line, size_t size, dom::element &root) {
        return parser.parse(reinterpret_cast<const uint8_t *>(line), size, false).get(root);
    }

    // Makes room for lines of `size` bytes and `depth` levels of non-empty arrays and objects, less one.
    static inline int allocate(dom::parser &parser, size_t size, size_t depth) {
        int error = parser.allocate(size, depth);
        return error ? error : static_cast<int>(parser.doc.allocate(size));
    }

    // How deep a line nests, and how many arrays and objects it has, empty ones included.
    struct Nesting { Py_ssize_t depth = 0, containers = 0; };

    // By the first stage's marks alone.
    static inline Nesting nesting(const dom::parser &parser, const char *line) {
        const auto &stage = *parser.implementation;
        Nesting found;
        Py_ssize_t level = 0;
        for (uint32_t at = 0; at < stage.n_structural_indexes; ++at) {
            char mark = line[stage.structural_indexes[at]];
            if (mark == '{' || mark == '[') {
                ++found.containers;
                if (++level > found.depth) { found.depth = level; }
            } else if (mark == '}' || mark == ']') { --level; }
        }
        return found;
    }

    // simdjson's letter for a value's type; # for an integer beyond 64 bits, a marked string: see numbers.h.
    static inline char kind(const dom::element &value) {
        char letter = static_cast<char>(value.type());
        if (letter == '"') {
            const char *data = value.get_c_str().value_unsafe();
            if (*data == MARK) { return '#'; }
        }
        return letter;
    }

    // A `Slice` is that of slices.pxd.
    template <typename Slice> static inline void text(const dom::element &value, Slice *found) {
        std::string_view view;
        if (value.get_string().get(view)) { view = std::string_view(); }
        found->data = view.data();
        found->size = static_cast<Py_ssize_t>(view.size());
    }

    // A number or a truth value; 0 or false of another type.
    template <typename Scalar> static inline Scalar scalar(const dom::element &value) {
        Scalar found = 0;
        if (value.get(found)) { found = 0; }
        return found;
    }

    // How many elements an array has; simdjson counts no further than UNCOUNTED.
    enum { UNCOUNTED = 0xFFFFFF };

    static inline Py_ssize_t size_of(const dom::element &array) {
        dom::array elements;
        return array.get_array().get(elements) ? 0 : static_cast<Py_ssize_t>(elements.size());
    }

    // The members of an object, one at a time.
    struct Members {
        dom::object::iterator at, end;
        const char *key;
        Py_ssize_t key_size;
        dom::element value;

        Members() noexcept = default;

        void begin(const dom::element &object) noexcept {
            dom::object members;
            if (object.get_object().get(members)) { at = end; return; }
            at = members.begin();
            end = members.end();
        }

        bool next() noexcept {
            if (!(at != end)) { return false; }
            key = at.key_c_str();
            key_size = static_cast<Py_ssize_t>(at.key_length());
            value = at.value();
            ++at;
            return true;
        }
    };

    // The elements of an array, one at a time.
    struct Elements {
        dom::array::iterator at, end;
        dom::element value;

        Elements() noexcept = default;

        void begin(const dom::element &array) noexcept {
            dom::array elements;
            if (array.get_array().get(elements)) { at = end; return; }
            at = elements.begin();
            end = elements.end();
        }

        bool next() noexcept {
            if (!(at != end)) { return false; }
            value = *at;
            ++at;
            return true;
        }
    };

    // JSON's white space (RFC 8259, section 2). The newline is part of it: a body over HTTP may hold any.
    static inline bool is_space(char byte) {
        return byte == ' ' || byte == '\\t' || byte == '\\r' || byte == '\\n';
    }

    // Steps over the values of the outermost object or array by their structural indexes. Valid
    // after a parse that found the line's structure sound, even if it refused one of the numbers.
    struct Places {
        const uint32_t *indexes;
        const char *line;
        size_t at;
        bool keyed;

        void begin(const dom::parser &parser, const char *text) noexcept {
            indexes = parser.implementation->structural_indexes.get();
            line = text;
            keyed = line[indexes[0]] == '{';
            at = 1;
        }

        // The next value's text, without white space around it; false at the end.
        template <typename Slice> bool next(Slice *found) noexcept {
            char first = line[indexes[at]];
            if (first == '}' || first == ']') { return false; }
            if (keyed) { at += 2; }
            size_t start = at;
            size_t depth = 0;
            do {
                char mark = line[indexes[at]];
                if (mark == '{' || mark == '[') { ++depth; }
                else if (mark == '}' || mark == ']') { --depth; }
                ++at;
            } while (depth > 0);
            const char *from = line + indexes[start];
            const char *to = line + indexes[at];
            while (is_space(to[-1])) { --to; }
            found->data = from;
            found->size = to - from;
            if (line[indexes[at]] == ',') { ++at; }
            return true;
        }
    };

    // The text of the member at `inner` of the object that is the member at `outer` of the line's object.
    template <typename Slice> static inline void member_text(
        const dom::parser &parser, const char *line, Py_ssize_t outer, Py_ssize_t inner, Slice *found
    ) {
        Places places;
        found->size = 0;
        places.begin(parser, line);
        while (outer-- > 0) { places.next(found); }
        places.at += 3;  // key, colon, opening brace
        do { places.next(found); } while (inner-- > 0);
    }

    }  // namespace fastrpc
    """
    int SIMDJSON_SUCCESS "simdjson::SUCCESS"
    int SIMDJSON_MEMALLOC "simdjson::MEMALLOC"
    int SIMDJSON_DEPTH_ERROR "simdjson::DEPTH_ERROR"
    int SIMDJSON_NUMBER_ERROR "simdjson::NUMBER_ERROR"
    int SIMDJSON_BIGINT_ERROR "simdjson::BIGINT_ERROR"

    cdef struct Nesting "fastrpc::Nesting":
        Py_ssize_t depth
        Py_ssize_t containers

    cdef cppclass Element "simdjson::dom::element":
        Element() noexcept

    cdef cppclass Parser "simdjson::dom::parser":
        Parser() noexcept

    cdef cppclass Members "fastrpc::Members":
        const char* key
        Py_ssize_t key_size
        Element value
        void begin(const Element& object) noexcept
        bint next() noexcept

    cdef cppclass Elements "fastrpc::Elements":
        Element value
        void begin(const Element& array) noexcept
        bint next() noexcept

    cdef cppclass Places "fastrpc::Places":
        void begin(const Parser& parser, const char* line) noexcept
        bint next(Slice* found) noexcept

    void member_text "fastrpc::member_text"(
        const Parser& parser, const char* line, Py_ssize_t outer, Py_ssize_t inner, Slice* found
    ) noexcept
    Py_ssize_t marks_of "fastrpc::marks_of"(const Parser& parser, const char* line, Py_ssize_t size) noexcept
    int parse_marked "fastrpc::parse_marked"(
        Parser& parser, const char* line, Py_ssize_t size, char* copy, Py_ssize_t copy_size, size_t depth,
        Element& root
    ) noexcept
    Py_ssize_t UNCOUNTED "fastrpc::UNCOUNTED"
    Py_ssize_t size_of "fastrpc::size_of"(const Element& array) noexcept
    int allocate "fastrpc::allocate"(Parser& parser, size_t size, size_t depth) noexcept
    Nesting nesting_of "fastrpc::nesting"(const Parser& parser, const char* line) noexcept
    int parse "fastrpc::parse"(Parser& parser, const char* line, size_t size, Element& root) noexcept
    char kind_of "fastrpc::kind"(const Element& value) noexcept
    void text_of "fastrpc::text"(const Element& value, Slice* found) noexcept
    int64_t integer_of "fastrpc::scalar<int64_t>"(const Element& value) noexcept
    uint64_t large_integer_of "fastrpc::scalar<uint64_t>"(const Element& value) noexcept
    double real_of "fastrpc::scalar<double>"(const Element& value) noexcept
    bint truth_of "fastrpc::scalar<bool>"(const Element& value) noexcept
