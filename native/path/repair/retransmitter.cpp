#include "path/repair/retransmitter.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "ring/counters.hpp"
#include "wire/control.hpp"

namespace ringcast {

Retransmitter::Retransmitter(Descriptor socket) : socket_(std::move(socket)), outgoing_(socket_.get()), intake_(kDatagramBytes), watch_([this] {
    news_.store(true);
    wake_receiver(socket_.get());
}), thread_([this] { wake_receiver(socket_.get()); }) {
    thread_.start("ringcast-repair", [this] { run(); });
}

Retransmitter::~Retransmitter() { close(); }

void Retransmitter::close() {
    thread_.stop();
    watch_.close();
}

template <typename Do>
void Retransmitter::ask(u64 key, Do&& of_group) {
    thread_.ask([this, key, of_group = std::forward<Do>(of_group)] {
        if (OpenGroup* entry = find(key)) of_group(*entry->group);
    });
}

std::shared_ptr<Group> Retransmitter::open(int ring_fd, int bell_fd, const Geometry& geometry, u64 incarnation, const GroupSpec& spec) {
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
        close_open_group(group->key());
        place_of_[group->key()] = groups_.size();
        groups_.push_back({group, ring, shared});
    });
    return group;
}

void Retransmitter::close_group(u64 key) {
    {
        const std::lock_guard lock(mutex_);
        open_.erase(key);
    }
    thread_.ask_and_wait([this, key] { close_open_group(key); }, 2);
}

void Retransmitter::set_members(u64 key, std::vector<GroupMember> members) {
    ask(key, [members = std::move(members)](Group& group) { group.set_members(members); });
}

void Retransmitter::pump_from(u64 key, u64 seq) {
    ask(key, [seq](Group& group) { group.pump_from(seq); });
}

void Retransmitter::retune(u64 key, const recovery::Tuning& tuning, std::shared_ptr<recovery::Filter> filter) {
    ask(key, [=](Group& group) { group.retune(tuning, filter); });
}

void Retransmitter::set_multicast(u64 key, const Endpoint& multicast) {
    ask(key, [multicast](Group& group) { group.set_multicast(multicast); });
}

void Retransmitter::probe(u64 key) {
    ask(key, [](Group& group) { group.probe(); });
}

void Retransmitter::take_requests() {
    thread_.do_errands();
    for (OpenGroup& entry : groups_) entry.due_ns = 0;
}

Retransmitter::OpenGroup* Retransmitter::find(u64 key) {
    const auto found = place_of_.find(key);
    return found == place_of_.end() ? nullptr : &groups_[found->second];
}

void Retransmitter::close_open_group(u64 key) {
    const auto found = place_of_.extract(key);
    if (found.empty()) return;
    watch_.remove(key);
    OpenGroup& gone = groups_[found.mapped()];
    if (&gone != &groups_.back()) {
        place_of_[groups_.back().group->key()] = found.mapped();
        gone = std::move(groups_.back());
    }
    groups_.pop_back();
}

void Retransmitter::run() {
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
    groups_.clear();
    place_of_.clear();
}

void Retransmitter::take_news() {
    for (const u64 key : watch_.came())
        if (OpenGroup* entry = find(key)) {
            entry->watched = false;
            entry->due_ns = 0;
        }
}

// Returns when it is to be called again.
i64 Retransmitter::work() {
    const i64 now = steady_ns();
    i64 wake_at = kForever;
    for (OpenGroup& entry : groups_) {
        if (entry.due_ns <= now) {
            add(counters_.looks, 1);
            const bool more = entry.group->work(now);
            entry.due_ns = more ? now : entry.group->wake_at_ns(now);
            // What is idle now has been looked at.
            if (!entry.watched && entry.group->idle(now)) {
                entry.watched = true;
                watch_.add(entry.group->key(), BellWatch::written(entry.ring, entry.bell, entry.group->tail_seen()));
            }
        }
        wake_at = std::min(wake_at, entry.due_ns);
    }
    return wake_at;
}

void Retransmitter::receive() {
    const std::size_t n = intake_.receive(socket_.get(), MSG_DONTWAIT);
    // A group opened before its first answer was sent is known here before it is looked for.
    if (thread_.asked()) take_requests();
    const i64 now = steady_ns();
    for (std::size_t i = 0; i < n; ++i) {
        std::span<std::byte> datagram = intake_.at(i);
        if (datagram.empty()) continue;
        add(counters_.datagrams, 1);
        wire::Control control;
        if (wire::parse_control_untrusted(datagram, control) != wire::Parse::ok) {
            add(counters_.malformed, 1);
            continue;
        }
        if (OpenGroup* entry = find(control.key)) {
            if (seal::Opener* const opener = entry->group->opener()) {
                std::size_t length = datagram.size();
                if (opener->open(datagram.data(), length) != seal::Verdict::ok) continue;
                datagram = datagram.first(length);
            }
            entry->group->on_datagram(datagram, now);
            entry->due_ns = 0;
        } else {
            add(counters_.stranger, 1);
        }
    }
}

}  // namespace ringcast
