#include "path/repair.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "ring/counters.hpp"
#include "wire/control.hpp"

namespace ringcast {

Repair::Repair(Descriptor socket) : socket_(std::move(socket)), outgoing_(socket_.get()), buffers_(new std::byte[kBatch * kDatagramBytes]), watch_([this] {
    news_.store(true);
    poke();
}), thread_([this] { poke(); }) {
    thread_.start("ringcast-repair", [this] { run(); });
}

Repair::~Repair() { close(); }

void Repair::close() {
    thread_.stop();
    watch_.close();
}

// An empty datagram to ourselves. Should it get lost, the next slice of time does.
void Repair::poke() {
    Endpoint own;
    own.length = sizeof own.address;
    if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own.address), &own.length) == 0)
        sendto(socket_.get(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL, own.at(), own.length);
}

template <typename Do>
void Repair::ask(u64 key, Do&& of_group) {
    thread_.ask([this, key, of_group = std::forward<Do>(of_group)] {
        if (Entry* entry = find(key)) of_group(*entry->group);
    });
}

std::shared_ptr<Group> Repair::open(int ring_fd, int bell_fd, const Geometry& geometry, u64 incarnation, const GroupSpec& spec) {
    auto ring = std::make_shared<const RingView>(ring_fd, geometry, incarnation);
    check_page(bell_fd, kPage);
    const auto bell = [&] { return map_plain(bell_fd, kPage, Access::write); };
    auto group = std::make_shared<Group>(ring, bell(), spec.reliable ? bell() : Mapping(), spec, outgoing_);
    // Before the group is there: a thread that cannot be started is refused to whoever asks, not missed when it is idle.
    {
        const std::lock_guard lock(mutex_);
        watch_.make_room(open_.size() + 1);
        open_.insert(group->key());
    }
    thread_.ask([this, group, ring, shared = std::make_shared<Mapping>(bell())] {
        close_entry(group->key());
        place_of_[group->key()] = entries_.size();
        entries_.push_back({group, ring, shared});
    });
    return group;
}

void Repair::close_group(u64 key) {
    {
        const std::lock_guard lock(mutex_);
        open_.erase(key);
    }
    thread_.ask_and_wait([this, key] { close_entry(key); }, 2);
}

void Repair::set_members(u64 key, std::vector<GroupMember> members) {
    ask(key, [members = std::move(members)](Group& group) { group.set_members(members); });
}

void Repair::pump_from(u64 key, u64 seq) {
    ask(key, [seq](Group& group) { group.pump_from(seq); });
}

void Repair::retune(u64 key, const recovery::Tuning& tuning, const recovery::LossSpec& loss, u64 seed) {
    ask(key, [=](Group& group) { group.retune(tuning, loss, seed); });
}

void Repair::set_multicast(u64 key, const Endpoint& multicast) {
    ask(key, [multicast](Group& group) { group.set_multicast(multicast); });
}

void Repair::probe(u64 key) {
    ask(key, [](Group& group) { group.probe(); });
}

void Repair::take_requests() {
    thread_.do_errands();
    for (Entry& entry : entries_) entry.due_ns = 0;
}

Repair::Entry* Repair::find(u64 key) {
    const auto found = place_of_.find(key);
    return found == place_of_.end() ? nullptr : &entries_[found->second];
}

void Repair::close_entry(u64 key) {
    const auto found = place_of_.extract(key);
    if (found.empty()) return;
    watch_.remove(key);
    Entry& gone = entries_[found.mapped()];
    if (&gone != &entries_.back()) {
        place_of_[entries_.back().group->key()] = found.mapped();
        gone = std::move(entries_.back());
    }
    entries_.pop_back();
}

void Repair::run() {
    while (!thread_.stopping()) {
        if (thread_.asked()) take_requests();
        if (news_.exchange(false)) take_news();
        const i64 wake_at = work();
        const i64 left = wake_at == kForever ? futex::kSliceNs : std::clamp<i64>(wake_at - steady_ns(), 0, futex::kSliceNs);
        pollfd fd{socket_.get(), POLLIN, 0};
        const timespec timeout{0, left};
        if (ppoll(&fd, 1, &timeout, nullptr) > 0) receive();
    }
    take_requests();
    entries_.clear();
    place_of_.clear();
}

void Repair::take_news() {
    for (const u64 key : watch_.came())
        if (Entry* entry = find(key)) {
            entry->watched = false;
            entry->due_ns = 0;
        }
}

// Returns when it is to be called again.
i64 Repair::work() {
    const i64 now = steady_ns();
    i64 wake_at = kForever;
    for (Entry& entry : entries_) {
        if (entry.due_ns <= now) {
            add(counters_.looks, 1);
            const bool more = entry.group->work(now);
            entry.due_ns = more ? now : entry.group->wake_at_ns(now);
            // What is idle now has been looked at.
            if (!entry.watched && entry.group->idle(now)) {
                entry.watched = true;
                watch_.add(entry.group->key(), Watch::written(entry.ring, entry.bell, entry.group->tail_seen()));
            }
        }
        wake_at = std::min(wake_at, entry.due_ns);
    }
    return wake_at;
}

void Repair::receive() {
    std::array<mmsghdr, kBatch> vector;
    std::array<iovec, kBatch> parts;
    for (std::size_t i = 0; i < kBatch; ++i) {
        parts[i] = {buffers_.get() + i * kDatagramBytes, kDatagramBytes};
        vector[i].msg_hdr = {};
        vector[i].msg_hdr.msg_iov = &parts[i];
        vector[i].msg_hdr.msg_iovlen = 1;
    }
    const int n = recvmmsg(socket_.get(), vector.data(), kBatch, MSG_DONTWAIT, nullptr);
    const i64 now = steady_ns();
    for (std::size_t i = 0; n > 0 && i < static_cast<std::size_t>(n); ++i) {
        const wire::Bytes datagram{buffers_.get() + i * kDatagramBytes, vector[i].msg_len};
        if (datagram.empty()) continue;
        add(counters_.datagrams, 1);
        wire::Control control;
        if (wire::parse_control_untrusted(datagram, control) != wire::Parse::ok) {
            add(counters_.malformed, 1);
            continue;
        }
        if (Entry* entry = find(control.key)) {
            entry->group->on_datagram(datagram, now);
            entry->due_ns = 0;
        } else {
            add(counters_.stranger, 1);
        }
    }
}

}  // namespace ringcast
