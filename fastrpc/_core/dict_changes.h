/* Has a dict changed since? A number that says so: of Python's own count before 3.12, of a watcher from there on.
 *
 * One dict at a time. Costs some instructions a question; a watcher costs each change of the dict a call. */
#ifndef FASTRPC_DICT_CHANGES_H
#define FASTRPC_DICT_CHANGES_H

#include <Python.h>

#if PY_VERSION_HEX < 0x030C0000

static inline uint64_t fastrpc_dict_changes(PyObject* dict) { return ((PyDictObject*)dict)->ma_version_tag; }

#else

static uint64_t fastrpc_changes = 1; /* of the watched dict, and of which dict that is */
static PyObject* fastrpc_watched = NULL;
static int fastrpc_watcher = -1;

static int fastrpc_dict_changed(PyDict_WatchEvent event, PyObject* dict, PyObject* key, PyObject* value) {
    (void)event, (void)dict, (void)key, (void)value;
    ++fastrpc_changes;
    return 0;
}

/* 0: it cannot be said, since an interpreter has room for eight watchers. */
static inline uint64_t fastrpc_dict_changes(PyObject* dict) {
    if (dict == fastrpc_watched) { return fastrpc_changes; }
    if (fastrpc_watcher < 0) { fastrpc_watcher = PyDict_AddWatcher(fastrpc_dict_changed); }
    if (fastrpc_watcher < 0 || PyDict_Watch(fastrpc_watcher, dict) < 0) {
        PyErr_Clear();
        return 0;
    }
    if (fastrpc_watched != NULL) {
        PyDict_Unwatch(fastrpc_watcher, fastrpc_watched);
        Py_DECREF(fastrpc_watched);
    }
    Py_INCREF(dict);
    fastrpc_watched = dict;
    return ++fastrpc_changes;
}

#endif
#endif
