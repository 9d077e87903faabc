// VariableTable: columns of variables and their chunks in Python.
//
// A variable that is set by name costs one call; everything else takes and gives arrays, and no Python runs per variable.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "bindings/gil.hpp"
#include "bindings/variables/batch.hpp"
#include "bindings/variables/received.hpp"
#include "bindings/variables/sent.hpp"
#include "bindings/variables/values.hpp"
#include "system/clock.hpp"
#include "variables/outbox.hpp"
#include "variables/view.hpp"

namespace ringcast::bindings {
namespace {

using namespace variables;

using Indices = nb::ndarray<const u32, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// What became of variables that came together. NumPy is asked for arrays when somebody looks, not before he is told.
struct PyTold {
    std::vector<u32> indices;
    std::vector<std::uint8_t> how;
    bool heads_up = false;  // the last chunk was one
};

class PyTable : public ChunkSink, public ChunkSource {
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
        return as_bytes(chunks);
    }

    // Few are made sooner than a thread that gave the GIL away has it back.
    Packet packet(const PacketWanted& wanted) override {
        static constexpr std::size_t kFew = 256;
        std::unique_lock lock(box_.mutex());
        if (!wanted.full && box_.changed() <= kFew) return made(wanted);
        lock.unlock();
        const Released released;
        lock.lock();
        Packet out = made(wanted);
        lock.unlock();
        return out;
    }

    // ---- everybody else
    // (indices, how, chunks that are none)
    nb::tuple apply(nb::handle chunks, nb::handle event_times) {
        const Batch batch(chunks, event_times);
        Applied applied;
        const u64 bad = batch.each([&](std::span<const std::byte> chunk, std::optional<i64> event_ns) { return apply_one(chunk, event_ns, applied); });
        malformed_ += bad;
        count(applied);
        return nb::make_tuple(array(std::move(applied.indices)), array(std::move(applied.how)), bad);
    }

    Taken take_untrusted(std::span<const std::byte> chunk, i64 event_ns) override {
        const bool good = apply_one(chunk, event_ns, taken_);
        malformed_ += !good;
        return !good ? Taken::none : taken_.info.heads_up ? Taken::heads_up : taken_.last ? Taken::last : Taken::more;
    }
    nb::object finish() override {
        Applied applied = std::exchange(taken_, {});
        count(applied);
        return nb::cast(PyTold{std::move(applied.indices), std::move(applied.how), applied.info.heads_up});
    }

    // ---- looking
    nb::object get(nb::handle name) {
        const std::lock_guard lock(box_.mutex());
        const u32 index = box_.table().find(text_of(name));
        return index == kMostVariables ? nb::object(nb::none()) : value(index);
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
    Packet made(const PacketWanted& wanted) {
        if (wanted.heads_up) return {{box_.heads_up(wanted.period_ns, wanted.frame_ms, wanted.limit)}, std::nullopt};
        Packet out{box_.collect(wanted.full, wanted.period_ns, wanted.frame_ms, wanted.limit), std::nullopt};
        out.event_ns = box_.newest_ns();
        return out;
    }
    bool apply_one(std::span<const std::byte> chunk, std::optional<i64> event_ns, Applied& applied) {
        const std::lock_guard lock(box_.mutex());
        if (!apply_untrusted(chunk, box_.table(), applied, event_ns)) return false;
        announced_ = applied.info.live;
        heard_ = true;
        period_ns_ = applied.info.period_ns;
        frame_ms_ = applied.info.frame_ms;
        packets_ += applied.last;
        fulls_ += applied.last && applied.info.full;
        return true;
    }
    void count(const Applied& applied) {
        values_ += applied.values;
        unknown_ += applied.unknown;
        refused_ += applied.refused;
    }
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
    nb::object value(u32 index) { return to_python(box_.table(), index); }

    Outbox box_;
    Applied taken_;  // by the receiving thread, and not finished
    u64 values_ = 0, packets_ = 0, fulls_ = 0, unknown_ = 0, refused_ = 0, malformed_ = 0;
    u32 announced_ = 0;
    bool heard_ = false;
    i64 period_ns_ = 0;
    u32 frame_ms_ = 0;
};

}  // namespace

ChunkSource& source_of_chunks(nb::handle table) {
    if (!nb::isinstance<PyTable>(table)) throw nb::type_error("packets are made of a VariableTable");
    return *nb::inst_ptr<PyTable>(table);
}

ChunkSink& sink_of(nb::handle table) {
    if (!nb::isinstance<PyTable>(table)) throw nb::type_error("chunks are received into a VariableTable");
    return *nb::inst_ptr<PyTable>(table);
}

void bind_variable_table(nb::module_& m) {
    m.attr("MOST_VARIABLES") = kMostVariables;
    m.attr("HOW_TIME") = static_cast<int>(kTime);
    m.attr("HOW_REPEATED") = static_cast<int>(kRepeated);
    m.attr("HOW_DECLARED") = static_cast<int>(kDeclared);
    m.attr("HOW_REMOVED") = static_cast<int>(kRemoved);
    m.def("variable_matches", [](const std::string& pattern, const std::string& name) { return matches(pattern, name); }, "pattern"_a, "name"_a);
    nb::class_<PyTold>(m, "ToldVariables")
        .def("__len__", [](const PyTold& told) { return told.indices.size(); })
        .def_ro("heads_up", &PyTold::heads_up)
        .def("indices", [](const PyTold& told) { return array(told.indices); }, nb::sig("def indices(self) -> object"))
        .def("how", [](const PyTold& told) { return array(told.how); }, nb::sig("def how(self) -> object"));
    nb::class_<PyTable>(m, "VariableTable")
        .def(nb::init<>())
        .def("add", &PyTable::add, "name"_a, "value"_a.none(), "event_ns"_a = nb::none())
        .def("set", &PyTable::set, "name"_a, "value"_a.none(), "event_ns"_a = nb::none())
        .def("set_at", &PyTable::set_at, nb::sig("def set_at(self, indices: object, values: object, event_ns: object | None = None) -> None"), "indices"_a, "values"_a, "event_ns"_a = nb::none())
        .def("strangers", &PyTable::strangers, nb::sig("def strangers(self, indices: object) -> int"), "indices"_a)
        .def("remove", &PyTable::remove, "name"_a)
        .def("collect", &PyTable::collect, nb::kw_only(), "full"_a, "period_ns"_a, "frame_ms"_a, "limit"_a)
        .def("apply", &PyTable::apply, "chunks"_a, "event_times"_a = nb::none())
        .def("get", &PyTable::get, "name"_a)
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
}

}  // namespace ringcast::bindings
