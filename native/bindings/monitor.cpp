// RingMonitor: what the daemon may do with a ring that is not its own.
#include <nanobind/stl/optional.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "bindings/errors.hpp"
#include "bindings/module.hpp"
#include "ring/view.hpp"
#include "system/clock.hpp"
#include "system/futex.hpp"

namespace ringcast::bindings {
namespace {

class PyMonitor {
public:
    PyMonitor(int ring_fd, int bell_fd, u64 depth, u64 capacity_bytes, u64 incarnation)
        : ring_(std::in_place, ring_fd, Geometry::of(depth, capacity_bytes), incarnation) {
        check_page(bell_fd, kPage);
        bell_ = map_plain(bell_fd, kPage, Access::write);
        fanout_fd_ = make_memfd("ringcast-fanout", kPage);
        fanout_ = map_plain(fanout_fd_.get(), kPage, Access::write);
        seal_against_writers(fanout_fd_.get());
    }

    const RingView& ring() const {
        if (!ring_) raise("ClosedError", "ring monitor");
        return *ring_;
    }
    Doorbell& bell() const {
        ring();
        return *bell_.as<Doorbell>();
    }

    void bump_fanout() {
        ring();
        fanout_.as<FanoutPage>()->version.fetch_add(1);
    }

    // The page that it bumps, for the publisher. The descriptor is the caller's to close.
    int take_fanout_fd() {
        ring();
        if (fanout_fd_.get() < 0) raise("RingcastError", "the descriptor of the fan-out page was taken already");
        return fanout_fd_.release();
    }

    u32 free_slots(u32 pid) {
        u32 freed = 0;
        for (ReliableSlot& slot : bell().slots) {
            for (u32 owner : {pid, pid | kTaking}) freed += pid != 0 && slot.owner.compare_exchange_strong(owner, 0);
        }
        if (freed != 0) tell_writer();
        return freed;
    }

    // Where the slowest of this daemon's own cursors is that read the ring for other nodes.
    std::optional<u64> place() const {
        std::optional<u64> slowest;
        for (const ReliableSlot& slot : bell().slots)
            if (slot.owner.load() == (static_cast<u32>(getpid()) | kForOthers)) slowest = std::min(slowest.value_or(UINT64_MAX), slot.position.load());
        return slowest;
    }
    // Of the places that a daemon before this one kept for readers on other nodes, free the foremost, because the others
    // spare more.
    bool free_orphan() {
        ReliableSlot* foremost = nullptr;
        for (ReliableSlot& slot : bell().slots)
            if (is_orphan(slot) && (foremost == nullptr || slot.position.load() > foremost->position.load())) foremost = &slot;
        if (foremost != nullptr) free_slot(*foremost);
        return foremost != nullptr;
    }
    // And those that the publisher has passed over, which spare nothing.
    u32 free_lapsed_orphans() {
        u32 freed = 0;
        for (ReliableSlot& slot : bell().slots)
            if (is_orphan(slot) && slot.lapsed.load() != 0) {
                free_slot(slot);
                ++freed;
            }
        return freed;
    }

    void close() {
        ring_.reset();
        bell_ = Mapping();
        fanout_ = Mapping();
        fanout_fd_.reset();
    }

private:
    static bool is_orphan(const ReliableSlot& slot) {
        const u32 owner = slot.owner.load();
        return (owner & kForOthers) != 0 && (owner & kTaking) == 0 && owner_process(owner) != static_cast<u32>(getpid());
    }
    void free_slot(ReliableSlot& slot) {
        slot.owner.store(0);
        tell_writer();
    }
    void tell_writer() {
        bell().slots_version.fetch_add(1);
        bell().space_bell.fetch_add(1);
        futex::wake_all(bell().space_bell);
    }

    std::optional<RingView> ring_;
    Mapping bell_;
    Descriptor fanout_fd_;
    Mapping fanout_;
};

}  // namespace

void bind_monitor(nb::module_& m) {
    nb::class_<PyMonitor>(m, "RingMonitor")
        .def(nb::init<int, int, u64, u64, u64>(), "ring_fd"_a, "bell_fd"_a, nb::kw_only(), "depth"_a, "capacity_bytes"_a, "incarnation"_a)
        .def("counters", [](const PyMonitor& p) { return header_counters(p.ring().header()); })
        .def("last_sent_ns", [](const PyMonitor& p) { return p.ring().header().last_sent_ns.load(); })
        .def("bump_fanout", &PyMonitor::bump_fanout)
        .def("take_fanout_fd", &PyMonitor::take_fanout_fd)
        .def("free_slots", &PyMonitor::free_slots, "pid"_a)
        .def("place", &PyMonitor::place)
        .def("free_lapsed_orphans", &PyMonitor::free_lapsed_orphans)
        .def("free_orphan", &PyMonitor::free_orphan)
        .def("close", &PyMonitor::close)
        .def_prop_ro("age_ns", [](const PyMonitor& p) { return std::max<i64>(0, steady_ns() - static_cast<i64>(p.ring().header().born_ns.load())); })
        .def_prop_ro("next_seq", [](const PyMonitor& p) { return p.ring().tail(); });
}

}  // namespace ringcast::bindings
