#include "ring/counters.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <stdexcept>

#include "ring/failure.hpp"

namespace ringcast {

CounterPage::CounterPage(u32 slots) {
    if (slots < 1 || slots > kMostCounterSlots) throw std::invalid_argument("a counter page has from 1 to 65536 slots");
    fd_ = make_memfd("ringcast-counters", slots * sizeof(SubscriberCounters));
    map_ = map_plain(fd_.get(), slots * sizeof(SubscriberCounters), Access::write);
    seal_against_writers(fd_.get());
    for (u32 i = slots; i-- > 0;) free_.push_back(i);
}

u32 CounterPage::take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) throw OsRefused("all subscriber counters of this session are taken", ENOSPC);
    const u32 index = free_.back();
    free_.pop_back();
    SubscriberCounters& c = at(index);
    for (auto* counter : {&c.received, &c.lost, &c.bytes, &c.corrupt}) counter->store(0, std::memory_order_relaxed);
    for (auto& bucket : c.latency) bucket.store(0, std::memory_order_relaxed);
    return index;
}

void CounterPage::release(u32 index) {
    std::lock_guard lock(mutex_);
    free_.push_back(index);
}

CounterView::CounterView(int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size <= 0 || st.st_size % static_cast<off_t>(sizeof(SubscriberCounters)) != 0)
        throw Corrupt("a counter page of an odd size");
    const auto length = static_cast<std::size_t>(st.st_size);
    check_page(fd, length);
    map_ = map_plain(fd, length, Access::read);
    slots_ = static_cast<u32>(length / sizeof(SubscriberCounters));
}

}  // namespace ringcast
