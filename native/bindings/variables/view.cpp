// VariableView: what a policy leaves of another table's chunks, in Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/gil.hpp"
#include "bindings/variables/batch.hpp"
#include "variables/view.hpp"

namespace ringcast::bindings {
namespace {

using namespace variables;

class PyView {
public:
    PyView(std::vector<std::string> patterns, const std::string& mode, double period_s, double dead_band, double least_s, double longest_s, bool by_value, double frame_s, std::size_t limit)
        : view_(std::move(patterns), policy(mode, period_s, dead_band, least_s, longest_s, by_value, frame_s), limit) {}

    // How many were no chunks.
    std::size_t feed(nb::handle chunks, nb::handle event_times) {
        return Batch(chunks, event_times).each([this](std::span<const std::byte> chunk, std::optional<i64> event_ns) {
            return view_.feed_untrusted(chunk, event_ns);
        });
    }
    nb::list poll(i64 now_ns, bool full) {
        std::vector<std::string> chunks;
        {
            const Released released;
            chunks = view_.poll(now_ns, full);
        }
        return as_bytes(chunks);
    }
    i64 wake_at_ns() const { return view_.wake_at_ns(); }
    std::optional<i64> newest_ns() const { return view_.newest_ns(); }
    u32 selected() const { return view_.selected(); }

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

void bind_variable_view(nb::module_& m) {
    nb::class_<PyView>(m, "VariableView")
        .def(nb::init<std::vector<std::string>, const std::string&, double, double, double, double, bool, double, std::size_t>(), "patterns"_a, nb::kw_only(), "mode"_a, "period_s"_a = 0.0,
             "dead_band"_a = 0.0, "least_s"_a = 0.0, "longest_s"_a = 0.0, "by_value"_a = false, "frame_s"_a = 1.0, "limit"_a = 1200)
        .def("feed", &PyView::feed, "chunks"_a, "event_times"_a = nb::none())
        .def("poll", &PyView::poll, "now_ns"_a, "full"_a = false)
        .def_prop_ro("wake_at_ns", &PyView::wake_at_ns)
        .def_prop_ro("newest_ns", &PyView::newest_ns)
        .def_prop_ro("selected", &PyView::selected);
}

}  // namespace ringcast::bindings
