#include "bindings/variables/values.hpp"

#include <bit>
#include <cstring>

namespace ringcast::bindings {

using namespace variables;

namespace {

[[noreturn]] void wrong_type(std::string_view name, const char* wanted, nb::handle value) {
    const std::string text = "variable '" + std::string(name) + "' is " + wanted + ", not " + Py_TYPE(value.ptr())->tp_name;
    throw nb::type_error(text.c_str());
}

struct Buffer {
    explicit Buffer(nb::handle value) {
        if (PyObject_GetBuffer(value.ptr(), &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
    }
    ~Buffer() { PyBuffer_Release(&view); }
    Buffer(const Buffer&) = delete;
    Py_buffer view;
};

Type array_type(const Py_buffer& view) {
    const std::string_view format = view.format == nullptr ? "B" : view.format;
    const char kind = format.empty() ? 'B' : format.back();
    if (view.ndim != 1) return Type::none;
    if (kind == 'd') return Type::float64s;
    if (kind == 'f') return Type::float32s;
    if ((kind == 'l' || kind == 'q') && view.itemsize == 8) return Type::int64s;
    if ((kind == 'i' || kind == 'l') && view.itemsize == 4) return Type::int32s;
    return Type::none;
}

template <typename T>
nb::object elements(const std::string& blob) {
    std::vector<T> values(blob.size() / sizeof(T));
    std::memcpy(values.data(), blob.data(), values.size() * sizeof(T));
    return array(std::move(values));
}

}  // namespace

const char* type_name(Type type) {
    static constexpr const char* names[] = {"removed", "float", "int", "bool", "str", "bytes", "float64[]", "int64[]", "float32[]", "int32[]"};
    return names[static_cast<std::size_t>(type)];
}

Type type_of(nb::handle value, std::string_view name) {
    PyObject* object = value.ptr();
    if (PyBool_Check(object)) return Type::boolean;
    if (PyFloat_Check(object)) return Type::float64;
    if (PyLong_Check(object)) return Type::int64;
    if (PyUnicode_Check(object)) return Type::text;
    if (PyBytes_Check(object)) return Type::bytes;
    if (PyObject_CheckBuffer(object)) {
        const Buffer buffer(value);
        if (buffer.view.ndim == 0) {
            const char kind = buffer.view.format == nullptr ? 'B' : buffer.view.format[0];
            return kind == 'd' || kind == 'f' ? Type::float64 : kind == '?' ? Type::boolean : Type::int64;
        }
        if (const Type type = array_type(buffer.view); type != Type::none) return type;
    }
    wrong_type(name, "a float, int, bool, str, bytes or a one-dimensional array of float64, float32, int64 or int32", value);
}

Value convert(nb::handle value, Type type, std::string_view name) {
    Value out;
    PyObject* object = value.ptr();
    switch (type) {
        case Type::float64: {
            if (PyBool_Check(object) || !PyNumber_Check(object) || PyComplex_Check(object)) wrong_type(name, "a float", value);
            const double number = PyFloat_AsDouble(object);
            if (number == -1.0 && PyErr_Occurred()) {
                PyErr_Clear();
                wrong_type(name, "a float", value);
            }
            out.bits = std::bit_cast<u64>(number);
            return out;
        }
        case Type::int64: {
            if (PyBool_Check(object) || !PyIndex_Check(object)) wrong_type(name, "an int", value);
            const nb::object index = nb::steal(PyNumber_Index(object));
            if (!index.is_valid()) {
                PyErr_Clear();
                wrong_type(name, "an int", value);
            }
            const long long number = PyLong_AsLongLong(index.ptr());
            if (number == -1 && PyErr_Occurred()) throw nb::python_error();
            out.bits = static_cast<u64>(number);
            return out;
        }
        case Type::boolean:
            if (!PyBool_Check(object) && std::string_view(Py_TYPE(object)->tp_name) != "numpy.bool") wrong_type(name, "a bool", value);
            out.bits = PyObject_IsTrue(object) == 1;
            return out;
        case Type::text: {
            if (!PyUnicode_Check(object)) wrong_type(name, "a str", value);
            Py_ssize_t length = 0;
            const char* text = PyUnicode_AsUTF8AndSize(object, &length);
            if (text == nullptr) throw nb::python_error();
            out.blob.assign(text, static_cast<std::size_t>(length));
            break;
        }
        case Type::bytes:
            if (!PyBytes_Check(object)) wrong_type(name, "bytes", value);
            out.blob.assign(PyBytes_AS_STRING(object), static_cast<std::size_t>(PyBytes_GET_SIZE(object)));
            break;
        default: {
            if (!PyObject_CheckBuffer(object)) wrong_type(name, type_name(type), value);
            const Buffer buffer(value);
            if (array_type(buffer.view) != type) wrong_type(name, type_name(type), value);
            out.blob.assign(static_cast<const char*>(buffer.view.buf), static_cast<std::size_t>(buffer.view.len));
        }
    }
    if (out.blob.size() > kMostValueBytes) {
        const std::string text = "a value of variable '" + std::string(name) + "' has " + std::to_string(out.blob.size()) + " bytes; at most " + std::to_string(kMostValueBytes) + " are possible: publish it on a tag of its own";
        throw nb::value_error(text.c_str());
    }
    return out;
}

nb::object to_python(const Table& table, u32 index) {
    const u64 bits = table.bits(index);
    const std::string& blob = table.blob(index);
    switch (table.type(index)) {
        case Type::float64: return nb::float_(std::bit_cast<double>(bits));
        case Type::int64: return nb::int_(static_cast<i64>(bits));
        case Type::boolean: return nb::bool_(bits != 0);
        case Type::text: return nb::steal(PyUnicode_DecodeUTF8(blob.data(), static_cast<Py_ssize_t>(blob.size()), "replace"));
        case Type::bytes: return nb::bytes(blob.data(), blob.size());
        case Type::float64s: return elements<double>(blob);
        case Type::int64s: return elements<i64>(blob);
        case Type::float32s: return elements<float>(blob);
        case Type::int32s: return elements<std::int32_t>(blob);
        case Type::none: break;
    }
    return nb::none();
}

}  // namespace ringcast::bindings
