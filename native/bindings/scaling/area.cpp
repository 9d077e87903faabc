// area_average: scaling images and arrays, without the GIL.
#include "scale/area.hpp"

#include <cstring>
#include <string>

#include "bindings/gil.hpp"
#include "bindings/module.hpp"

namespace ringcast::bindings {
namespace {

class Buffer {
public:
    Buffer(nb::handle value, int flags) {
        if (PyObject_GetBuffer(value.ptr(), &view_, flags) != 0) throw nb::python_error();
    }
    ~Buffer() { PyBuffer_Release(&view_); }
    Buffer(const Buffer&) = delete;
    const Py_buffer& operator*() const { return view_; }

private:
    Py_buffer view_;
};

template <typename Cell>
void run(const Py_buffer& source, const scale::Shape& from, const Py_buffer& result, const scale::Shape& to) {
    const Released released;
    scale::average(static_cast<const Cell*>(source.buf), from, static_cast<Cell*>(result.buf), to);
}

std::size_t bytes(const scale::Shape& shape, std::size_t cell) { return shape.rows * shape.columns * shape.colours * cell; }

void area_average(nb::handle source, nb::handle result, char kind, std::size_t rows, std::size_t columns, std::size_t to_rows,
                  std::size_t to_columns, std::size_t colours) {
    const Buffer in(source, PyBUF_SIMPLE), out(result, PyBUF_WRITABLE);
    const scale::Shape from{rows, columns, colours}, to{to_rows, to_columns, colours};
    const std::size_t cell = kind == 'B' ? 1 : kind == 'H' || kind == 'h' ? 2 : kind == 'f' ? 4 : kind == 'd' ? 8 : 0;
    constexpr std::size_t most = std::size_t{1} << 22;
    for (std::size_t extent : {rows, columns, to_rows, to_columns, colours})
        if (cell == 0 || extent == 0 || extent > most) throw nb::value_error("no such cells, or too many of them");
    if (static_cast<std::size_t>((*in).len) != bytes(from, cell) || static_cast<std::size_t>((*out).len) != bytes(to, cell))
        throw nb::value_error("the buffers are not of that shape");
    switch (kind) {
        case 'B': return run<std::uint8_t>(*in, from, *out, to);
        case 'H': return run<std::uint16_t>(*in, from, *out, to);
        case 'h': return run<std::int16_t>(*in, from, *out, to);
        case 'f': return run<float>(*in, from, *out, to);
        default: return run<double>(*in, from, *out, to);
    }
}

}  // namespace

void bind_area(nb::module_& m) {
    m.def("area_average", &area_average, "source"_a, "result"_a, nb::kw_only(), "kind"_a, "rows"_a, "columns"_a, "to_rows"_a, "to_columns"_a,
          "colours"_a);
}

}  // namespace ringcast::bindings
