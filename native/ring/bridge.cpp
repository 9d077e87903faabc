#include "ring/bridge.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "ring/failure.hpp"

namespace ringcast {

Port::Port() : eventfd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (eventfd.get() < 0) throw OsRefused("cannot create an eventfd", errno);
}

void Port::signal(u32 bit) {
    mailbox::ring(box, bit);
    raise();
}

void Port::raise() {
    if (!raised.exchange(true)) eventfd_write(eventfd.get(), 1);
}

void Port::clear() {
    // Read whatever the flag says, for a raise may be between its flag and its write; and read before the flag falls, or
    // a raise in between would be read away and its flag stay up for ever. One that comes between the two writes nothing:
    // its news is in the box already, and whoever clears looks there next.
    eventfd_t ignored;
    eventfd_read(eventfd.get(), &ignored);
    raised.store(false);
}

Bridge::Bridge() : fd_(make_memfd("ringcast-mailbox", kPage)), map_(map_plain(fd_.get(), kPage, Access::write)), thread_([this] { mailbox::poke(*map_.as<MailboxPage>()); }) {
    seal_size(fd_.get());
    thread_.start("ringcast-bridge", [this] { run(); });
}

Bridge::~Bridge() { close(); }

void Bridge::close() { thread_.stop(); }

void Bridge::add(u64 incarnation, const std::shared_ptr<Port>& port) {
    std::lock_guard lock(mutex_);
    ports_[mailbox_bit(incarnation)].push_back(port);
}

void Bridge::remove(u64 incarnation, const Port* port) {
    std::lock_guard lock(mutex_);
    const auto found = ports_.find(mailbox_bit(incarnation));
    if (found == ports_.end()) return;
    auto& ports = found->second;
    const auto at = std::find_if(ports.begin(), ports.end(), [&](const auto& p) { return p.get() == port; });
    if (at != ports.end()) ports.erase(at);
    if (ports.empty()) ports_.erase(found);
}

void Bridge::run() {
    MailboxPage& box = *map_.as<MailboxPage>();
    while (!thread_.stopping()) {
        const u32 bell = box.bell.load();
        box.sleeping.store(1);
        const bool any = mailbox::collect(box, [&](u32 bit) {
            std::lock_guard lock(mutex_);
            const auto found = ports_.find(bit);
            if (found == ports_.end()) return;
            for (const auto& port : found->second) port->signal(bit);
        });
        if (!any && !thread_.stopping()) futex::wait(box.bell, bell, futex::kSliceNs);
    }
}

}  // namespace ringcast
