// VariableTable and VariableView: columns of variables, their chunks and their policies in Python.
//
// A variable that is set by name costs one call; everything else takes and gives arrays, and no Python runs per variable.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "bindings/gil.hpp"
#include "bindings/module.hpp"
#include "bindings/payload.hpp"
#include "ring/clock.hpp"
#include "variables/outbox.hpp"
#include "variables/view.hpp"

namespace ringcast::bindings {
namespace {

using namespace variables;

using Indices = nb::ndarray<const u32, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
nb::object array(std::vector<T> values) {
    auto* held = new std::vector<T>(std::move(values));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner));
}

[[noreturn]] void wrong_type(std::string_view name, const char* wanted, nb::handle value) {
    const std::string text = "variable '" + std::string(name) + "' is " + wanted + ", not " + Py_TYPE(value.ptr())->tp_name;
    throw nb::type_error(text.c_str());
}

const char* type_name(Type type) {
    static constexpr const char* names[] = {"removed", "float", "int", "bool", "str", "bytes", "float64[]", "int64[]", "float32[]", "int32[]"};
    return names[static_cast<std::size_t>(type)];
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

// The type that a first value gives a variable.
Type type_of(nb::handle value, std::string_view name) {
    PyObject* object = value.ptr();
    if (PyBool_Check(object)) return Type::boolean;
    if (PyFloat_Check(object)) return Type::float64;
    if (PyLong_Check(object)) return Type::int64;
    if (PyUnicode_Check(object)) return Type::text;
    if (PyBytes_Check(object)) return Type::bytes;
    if (PyObject_CheckBuffer(object)) {
        const Buffer buffer(value);
        if (buffer.view.ndim == 0) return buffer.view.format != nullptr && std::strchr("df", buffer.view.format[0]) != nullptr ? Type::float64 : buffer.view.format != nullptr && buffer.view.format[0] == '?' ? Type::boolean : Type::int64;
        if (const Type type = array_type(buffer.view); type != Type::none) return type;
    }
    wrong_type(name, "a float, int, bool, str, bytes or a one-dimensional array of float64, float32, int64 or int32", value);
}

struct Value {
    u64 bits = 0;
    std::string blob;
};

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

// The event times of messages, one for each chunk, or none at all.
std::vector<i64> times_of(nb::handle event_times, nb::handle batch) {
    std::vector<i64> out;
    if (event_times.is_none()) return out;
    const nb::object given = nb::steal(PySequence_Fast(event_times.ptr(), "event times are a sequence"));
    if (!given.is_valid()) throw nb::python_error();
    if (PySequence_Fast_GET_SIZE(given.ptr()) != PySequence_Fast_GET_SIZE(batch.ptr())) throw nb::value_error("as many event times as chunks");
    out.reserve(static_cast<std::size_t>(PySequence_Fast_GET_SIZE(given.ptr())));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given.ptr()); ++i) {
        out.push_back(PyLong_AsLongLong(PySequence_Fast_GET_ITEM(given.ptr(), i)));
        if (out.back() == -1 && PyErr_Occurred()) throw nb::python_error();
    }
    return out;
}

std::optional<i64> event_of(const std::vector<i64>& events, Py_ssize_t i) {
    return events.empty() ? std::nullopt : std::optional(events[static_cast<std::size_t>(i)]);
}

class PyTable {
public:
    // ---- the owner
    u32 add(const std::string& name, nb::handle value, nb::handle event_ns) {
        const i64 time_ns = time_of(event_ns);
        if (!good_name(name)) throw nb::value_error(("variable name '" + name.substr(0, 80) + "' may hold letters, digits and _ . : + = ~ - [ ], in segments separated by '/', of at most 255 bytes").c_str());
        const Type type = type_of(value, name);
        const Value converted = convert(value, type, name);
        const std::lock_guard lock(box_.mutex());
        if (const u32 index = box_.table().find(name); index != kMostVariables)
            throw nb::value_error(("variable '" + name + "' is there already, as " + type_name(box_.table().type(index)) + "; remove it first to give it another type").c_str());
        if (box_.table().size() >= kMostVariables) throw nb::value_error("a tag has had as many variables as it can; spread them over several tags");
        const u32 index = box_.add(name, type);
        store(index, converted, time_ns);
        return index;
    }

    // False when there is no such variable.
    bool set(nb::handle name, nb::handle value, nb::handle event_ns) {
        const std::string_view key = text_of(name);
        const i64 time_ns = time_of(event_ns);
        box_.mutex().lock();
        const u32 index = box_.table().find(key);
        if (index == kMostVariables) {
            box_.mutex().unlock();
            return false;
        }
        const Type type = box_.table().type(index);
        if (type == Type::float64 && PyFloat_CheckExact(value.ptr())) [[likely]] {
            box_.table().store(index, std::bit_cast<u64>(PyFloat_AS_DOUBLE(value.ptr())), time_ns);
            box_.touch(index);
            box_.mutex().unlock();
            return true;
        }
        box_.mutex().unlock();  // converting may run the application's code
        const Value converted = convert(value, type, key);
        const std::lock_guard lock(box_.mutex());
        if (!box_.table().has(index)) return false;
        store(index, converted, time_ns);
        box_.touch(index);
        return true;
    }

    void set_at(Indices indices, Numbers values, nb::handle event_ns) {
        if (indices.shape(0) != values.shape(0)) throw nb::value_error("as many values as indices");
        const i64 time_ns = time_of(event_ns);
        const Released released;
        const std::lock_guard lock(box_.mutex());
        const u32* at = indices.data();
        const double* value = values.data();
        Table& table = box_.table();
        for (std::size_t i = 0; i < indices.shape(0); ++i) {
            if (!table.has(at[i]) || table.type(at[i]) != Type::float64) continue;
            table.store(at[i], std::bit_cast<u64>(value[i]), time_ns);
            box_.touch(at[i]);
        }
    }

    // How many of these indices are no float of this table: set_at passes them over.
    std::size_t strangers(Indices indices) {
        const std::lock_guard lock(box_.mutex());
        std::size_t count = 0;
        for (std::size_t i = 0; i < indices.shape(0); ++i)
            count += !box_.table().has(indices.data()[i]) || box_.table().type(indices.data()[i]) != Type::float64;
        return count;
    }

    bool remove(nb::handle name) {
        const std::lock_guard lock(box_.mutex());
        const u32 index = box_.table().find(text_of(name));
        if (index == kMostVariables) return false;
        box_.remove(index);
        return true;
    }

    nb::list collect(bool full, i64 period_ns, u32 frame_ms, std::size_t limit) {
        std::vector<std::string> chunks;
        {
            const Released released;
            const std::lock_guard lock(box_.mutex());
            chunks = box_.collect(full, period_ns, frame_ms, limit);
        }
        return bytes(chunks);
    }

    // Chunks of these variables, with their names: what an answer to a question is.
    nb::list extract(Indices indices, std::size_t limit) {
        std::vector<std::string> chunks;
        {
            const Released released;
            const std::lock_guard lock(box_.mutex());
            std::vector<u32> some;
            for (std::size_t i = 0; i < indices.shape(0); ++i)
                if (box_.table().has(indices.data()[i])) some.push_back(indices.data()[i]);
            std::sort(some.begin(), some.end());
            some.erase(std::unique(some.begin(), some.end()), some.end());
            const Group group{some, true, false};
            chunks = encode(box_.table(), {&group, 1}, {}, {false, box_.table().live(), 0, 0, 0, variables::newest_ns(box_.table(), {&group, 1}).value_or(0)}, limit);
        }
        return bytes(chunks);
    }

    static nb::list bytes(const std::vector<std::string>& chunks) {
        nb::list out;
        for (const std::string& chunk : chunks) out.append(nb::bytes(chunk.data(), chunk.size()));
        return out;
    }

    // ---- everybody else
    // (indices, how, chunks that are none)
    nb::tuple apply(nb::handle chunks, nb::handle event_times) {
        const nb::object batch = nb::steal(PySequence_Fast(chunks.ptr(), "apply takes a sequence of chunks"));
        if (!batch.is_valid()) throw nb::python_error();
        const std::vector<i64> events = times_of(event_times, batch);
        Applied applied;
        u64 bad = 0;
        {
            const std::lock_guard lock(box_.mutex());
            for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(batch.ptr()); ++i) {
                const Payload payload(nb::handle(PySequence_Fast_GET_ITEM(batch.ptr(), i)));
                const Part part = payload.parts()[0];
                if (!apply_untrusted({part.data, part.length}, box_.table(), applied, event_of(events, i))) {
                    ++bad;
                    continue;
                }
                announced_ = applied.info.live;
                heard_ = true;
                period_ns_ = applied.info.period_ns;
                frame_ms_ = applied.info.frame_ms;
                packets_ += applied.last;
                fulls_ += applied.last && applied.info.full;
            }
        }
        values_ += applied.values;
        unknown_ += applied.unknown;
        refused_ += applied.refused;
        malformed_ += bad;
        return nb::make_tuple(array(std::move(applied.indices)), array(std::move(applied.how)), bad);
    }

    // ---- looking
    nb::object get(nb::handle name) {
        const std::lock_guard lock(box_.mutex());
        const u32 index = box_.table().find(text_of(name));
        return index == kMostVariables ? nb::object(nb::none()) : value(index);
    }
    nb::object get_at(u32 index) {
        const std::lock_guard lock(box_.mutex());
        return box_.table().has(index) ? value(index) : nb::object(nb::none());
    }
    // float and int variables as float64; NaN for others.
    nb::object numbers(Indices indices) {
        std::vector<double> out(indices.shape(0));
        const std::lock_guard lock(box_.mutex());
        const Table& table = box_.table();
        for (std::size_t i = 0; i < out.size(); ++i) {
            const u32 index = indices.data()[i];
            const Type type = table.has(index) ? table.type(index) : Type::none;
            out[i] = type == Type::float64 ? std::bit_cast<double>(table.bits(index)) : type == Type::int64 ? static_cast<double>(static_cast<i64>(table.bits(index))) : type == Type::boolean ? static_cast<double>(table.bits(index)) : std::nan("");
        }
        return array(std::move(out));
    }
    nb::object times(Indices indices) {
        std::vector<i64> out(indices.shape(0));
        const std::lock_guard lock(box_.mutex());
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = box_.table().has(indices.data()[i]) ? box_.table().time_ns(indices.data()[i]) : 0;
        return array(std::move(out));
    }
    nb::list values_at(Indices indices) {
        nb::list out;
        const std::lock_guard lock(box_.mutex());
        for (std::size_t i = 0; i < indices.shape(0); ++i) out.append(box_.table().has(indices.data()[i]) ? value(indices.data()[i]) : nb::object(nb::none()));
        return out;
    }
    nb::object index(nb::handle name) {
        const std::lock_guard lock(box_.mutex());
        const u32 found = box_.table().find(text_of(name));
        return found == kMostVariables ? nb::object(nb::none()) : nb::object(nb::int_(found));
    }
    nb::object name(u32 index) {
        const std::lock_guard lock(box_.mutex());
        if (index >= box_.table().size() || box_.table().name(index).empty()) return nb::none();
        return nb::str(box_.table().name(index).c_str());
    }
    nb::object type(nb::handle name) {
        const std::lock_guard lock(box_.mutex());
        const u32 found = box_.table().find(text_of(name));
        return found == kMostVariables ? nb::object(nb::none()) : nb::object(nb::str(type_name(box_.table().type(found))));
    }
    nb::list names() {
        nb::list out;
        const std::lock_guard lock(box_.mutex());
        for (u32 index : box_.table().indices()) out.append(nb::str(box_.table().name(index).c_str()));
        return out;
    }
    nb::object select(const std::vector<std::string>& patterns) {
        std::vector<u32> out;
        {
            const Released released;
            const std::lock_guard lock(box_.mutex());
            for (u32 index : box_.table().indices())
                for (const std::string& pattern : patterns)
                    if (matches(pattern, box_.table().name(index))) {
                        out.push_back(index);
                        break;
                    }
        }
        return array(std::move(out));
    }
    u32 size() {
        const std::lock_guard lock(box_.mutex());
        return box_.table().live();
    }
    bool pending() {
        const std::lock_guard lock(box_.mutex());
        return box_.pending();
    }
    bool complete() {
        const std::lock_guard lock(box_.mutex());
        return heard_ && box_.table().live() >= announced_;
    }
    nb::dict counters() {
        const std::pair<const char*, u64> all[] = {{"changes", box_.changes()}, {"values", values_}, {"packets", packets_}, {"fulls", fulls_}, {"unknown", unknown_}, {"refused", refused_}, {"malformed", malformed_}};
        nb::dict out;
        for (const auto& [key, count] : all) out[key] = count;
        return out;
    }
    std::optional<i64> newest_ns() {
        const std::lock_guard lock(box_.mutex());
        return box_.newest_ns();
    }
    i64 period_ns() const { return period_ns_; }
    u32 frame_ms() const { return frame_ms_; }

private:
    static std::string_view text_of(nb::handle name) {
        Py_ssize_t length = 0;
        const char* text = PyUnicode_Check(name.ptr()) ? PyUnicode_AsUTF8AndSize(name.ptr(), &length) : nullptr;
        if (text == nullptr) {
            if (PyErr_Occurred()) throw nb::python_error();
            throw nb::type_error("a variable's name is a str");
        }
        return {text, static_cast<std::size_t>(length)};
    }
    static i64 time_of(nb::handle event_ns) {
        if (event_ns.is_none()) return utc_ns();
        const long long value = PyLong_AsLongLong(event_ns.ptr());
        if (value == -1 && PyErr_Occurred()) throw nb::python_error();
        return value;
    }
    void store(u32 index, const Value& converted, i64 time_ns) {
        if (is_scalar(box_.table().type(index))) {
            box_.table().store(index, converted.bits, time_ns);
        } else {
            box_.table().store(index, converted.blob, time_ns);
        }
    }
    template <typename T>
    static nb::object elements(const std::string& blob) {
        std::vector<T> values(blob.size() / sizeof(T));
        std::memcpy(values.data(), blob.data(), values.size() * sizeof(T));
        return array(std::move(values));
    }
    nb::object value(u32 index) const {
        const Table& table = const_cast<Outbox&>(box_).table();
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

    Outbox box_;
    u64 values_ = 0, packets_ = 0, fulls_ = 0, unknown_ = 0, refused_ = 0, malformed_ = 0;
    u32 announced_ = 0;
    bool heard_ = false;
    i64 period_ns_ = 0;
    u32 frame_ms_ = 0;
};

class PyView {
public:
    PyView(std::vector<std::string> patterns, const std::string& mode, double period_s, double dead_band, double least_s, double longest_s, bool by_value, double frame_s, std::size_t limit)
        : view_(std::move(patterns), policy(mode, period_s, dead_band, least_s, longest_s, by_value, frame_s), limit) {}

    // How many were no chunks.
    std::size_t feed(nb::handle chunks, nb::handle event_times) {
        const nb::object batch = nb::steal(PySequence_Fast(chunks.ptr(), "feed takes a sequence of chunks"));
        if (!batch.is_valid()) throw nb::python_error();
        const std::vector<i64> events = times_of(event_times, batch);
        std::size_t bad = 0;
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(batch.ptr()); ++i) {
            const Payload payload(nb::handle(PySequence_Fast_GET_ITEM(batch.ptr(), i)));
            const Part part = payload.parts()[0];
            bad += !view_.feed_untrusted({part.data, part.length}, event_of(events, i));
        }
        return bad;
    }
    nb::list poll(i64 now_ns, bool full) {
        std::vector<std::string> chunks;
        {
            const Released released;
            chunks = view_.poll(now_ns, full);
        }
        return PyTable::bytes(chunks);
    }
    i64 wake_at_ns() const { return view_.wake_at_ns(); }
    std::optional<i64> newest_ns() const { return view_.newest_ns(); }
    u32 selected() const { return view_.selected(); }
    i64 owner_period_ns() const { return view_.owner_period_ns(); }

private:
    static Policy policy(const std::string& mode, double period_s, double dead_band, double least_s, double longest_s, bool by_value, double frame_s) {
        Policy out;
        out.mode = mode == "periodic" ? Policy::Mode::periodic : mode == "on_change" ? Policy::Mode::on_change : Policy::Mode::every_cycle;
        const auto ns = [](double seconds) { return static_cast<i64>(seconds * 1e9); };
        out.period_ns = ns(period_s);
        out.dead_band = dead_band;
        out.least_ns = ns(least_s);
        out.longest_ns = ns(longest_s);
        out.by_value = by_value;
        out.frame_ns = ns(frame_s);
        return out;
    }
    View view_;
};

}  // namespace

void bind_variables(nb::module_& m) {
    m.attr("MOST_VARIABLES") = kMostVariables;
    m.attr("MOST_VALUE_BYTES") = kMostValueBytes;
    m.attr("HOW_VALUE") = static_cast<int>(kValue);
    m.attr("HOW_TIME") = static_cast<int>(kTime);
    m.attr("HOW_REPEATED") = static_cast<int>(kRepeated);
    m.attr("HOW_DECLARED") = static_cast<int>(kDeclared);
    m.attr("HOW_REMOVED") = static_cast<int>(kRemoved);
    m.def("variable_matches", [](const std::string& pattern, const std::string& name) { return matches(pattern, name); }, "pattern"_a, "name"_a);
    nb::class_<PyTable>(m, "VariableTable")
        .def(nb::init<>())
        .def("add", &PyTable::add, "name"_a, "value"_a.none(), "event_ns"_a = nb::none())
        .def("set", &PyTable::set, "name"_a, "value"_a.none(), "event_ns"_a = nb::none())
        .def("set_at", &PyTable::set_at, nb::sig("def set_at(self, indices: object, values: object, event_ns: object | None = None) -> None"), "indices"_a, "values"_a, "event_ns"_a = nb::none())
        .def("strangers", &PyTable::strangers, nb::sig("def strangers(self, indices: object) -> int"), "indices"_a)
        .def("remove", &PyTable::remove, "name"_a)
        .def("collect", &PyTable::collect, nb::kw_only(), "full"_a, "period_ns"_a, "frame_ms"_a, "limit"_a)
        .def("extract", &PyTable::extract, nb::sig("def extract(self, indices: object, *, limit: int) -> list"), "indices"_a, nb::kw_only(), "limit"_a)
        .def("apply", &PyTable::apply, "chunks"_a, "event_times"_a = nb::none())
        .def("get", &PyTable::get, "name"_a)
        .def("get_at", &PyTable::get_at, "index"_a)
        .def("numbers", &PyTable::numbers, nb::sig("def numbers(self, indices: object) -> object"), "indices"_a)
        .def("times", &PyTable::times, nb::sig("def times(self, indices: object) -> object"), "indices"_a)
        .def("values_at", &PyTable::values_at, nb::sig("def values_at(self, indices: object) -> list"), "indices"_a)
        .def("index", &PyTable::index, "name"_a)
        .def("name", &PyTable::name, "index"_a)
        .def("type", &PyTable::type, "name"_a)
        .def("names", &PyTable::names)
        .def("select", &PyTable::select, "patterns"_a)
        .def("counters", &PyTable::counters)
        .def("__len__", &PyTable::size)
        .def_prop_ro("pending", &PyTable::pending)
        .def_prop_ro("newest_ns", &PyTable::newest_ns)
        .def_prop_ro("complete", &PyTable::complete)
        .def_prop_ro("period_ns", &PyTable::period_ns)
        .def_prop_ro("frame_ms", &PyTable::frame_ms);
    nb::class_<PyView>(m, "VariableView")
        .def(nb::init<std::vector<std::string>, const std::string&, double, double, double, double, bool, double, std::size_t>(), "patterns"_a, nb::kw_only(), "mode"_a, "period_s"_a = 0.0,
             "dead_band"_a = 0.0, "least_s"_a = 0.0, "longest_s"_a = 0.0, "by_value"_a = false, "frame_s"_a = 1.0, "limit"_a = 1200)
        .def("feed", &PyView::feed, "chunks"_a, "event_times"_a = nb::none())
        .def("poll", &PyView::poll, "now_ns"_a, "full"_a = false)
        .def_prop_ro("wake_at_ns", &PyView::wake_at_ns)
        .def_prop_ro("newest_ns", &PyView::newest_ns)
        .def_prop_ro("selected", &PyView::selected)
        .def_prop_ro("owner_period_ns", &PyView::owner_period_ns);
}

}  // namespace ringcast::bindings
