#include "path/receiving/delivery.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ring/counters.hpp"
#include "ring/failure.hpp"

namespace ringcast {

i64 Delivery::Channel::wake_at_ns() const {
    const i64 at = mirror->wake_at_ns();
    return recovered ? std::min(at, recovered->wake_at_ns()) : at;
}

void Delivery::Channel::tick(i64 now_ns) {
    if (recovered) recovered->tick(now_ns);
    if (mirror->wake_at_ns() <= now_ns) mirror->tick(now_ns);
    after_batch(now_ns);
}

void Delivery::Channel::after_batch(i64 now_ns) {
    mirror->announce();
    if (recovered) recovered->after_batch(now_ns);
}

Delivery::Delivery(Descriptor socket, bool attended) : socket_(std::move(socket)), attended_(attended), outgoing_(socket_.get()), intake_(kDatagramBytes), watch_([this] {
    news_.store(true);
    rouse();
}), thread_([this] { rouse(); }) {
    if (attended) look_up_ = Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    if (attended && look_up_.get() < 0) throw OsRefused("cannot make a timer", errno);
    stamp_datagrams(socket_.get());
    poller_.add(socket_.get());
    limit_receiving(futex::kSliceNs);
    thread_.start("ringcast-deliver", [this] { run(); });
}

Delivery::~Delivery() { close(); }

void Delivery::close() {
    thread_.stop();
    watch_.close();
}

std::shared_ptr<Mirror> Delivery::open(const ChannelSpec& spec) {
    auto mirror = std::make_shared<Mirror>(spec);
    thread_.ask([this, mirror] { channels_[mirror->spec().key] = {mirror, nullptr}; });
    return mirror;
}

std::shared_ptr<Mirror> Delivery::open(const ChannelSpec& spec, RecoverySpec recovery, const RingView* before) {
    ChannelSpec guarded = spec;
    guarded.guarded = true;
    guarded.kept_bytes = u64{recovery.stack.window.cells} * recovery.stack.window.cell_bytes;
    auto mirror = std::make_shared<Mirror>(guarded);
    if (before != nullptr) mirror->inherit(*before);
    // Made here, so that a stack that cannot be is refused to whoever asks for it.
    auto recovered = std::make_shared<std::unique_ptr<Recovered>>(std::make_unique<Recovered>(mirror, std::move(recovery), outgoing_));
    if (spec.reliable) {
        const std::lock_guard lock(mutex_);
        watch_.make_room(awaiting_.size() + 1);
        awaiting_.insert(spec.key);
    }
    thread_.ask([this, mirror, recovered] { channels_[mirror->spec().key] = {mirror, std::move(*recovered)}; });
    return mirror;
}

void Delivery::close_channel(u64 key) {
    {
        const std::lock_guard lock(mutex_);
        awaiting_.erase(key);
    }
    thread_.ask([this, key] {
        watch_.remove(key);
        if (const auto found = channels_.extract(key)) found.mapped().mirror->close();
    });
}

void Delivery::attach_fanout(u64 key, Descriptor socket) {
    thread_.ask([this, key, kept = std::make_shared<Descriptor>(std::move(socket))] {
        if (const auto found = channels_.find(key); found != channels_.end()) found->second.mirror->ring().attach_fanout(std::move(*kept));
    });
}

void Delivery::retune(u64 key, const recovery::Tuning& tuning, std::shared_ptr<recovery::Filter> filter, bool patient) {
    thread_.ask([=, this] {
        if (const auto found = channels_.find(key); found != channels_.end() && found->second.recovered)
            found->second.recovered->retune(tuning, filter, patient);
    });
}

void Delivery::regroup(u64 key, std::vector<Endpoint> peers) {
    thread_.ask([this, key, peers = std::move(peers)] {
        if (const auto found = channels_.find(key); found != channels_.end() && found->second.recovered) found->second.recovered->regroup(peers);
    });
}

void Delivery::add_socket(Descriptor socket) {
    // Here and not on the thread: what the kernel refuses is refused to whoever asks.
    stamp_datagrams(socket.get());
    poller_.add(socket.get());
    thread_.ask([this, kept = std::make_shared<Descriptor>(std::move(socket))] { more_sockets_.push_back(std::move(*kept)); });
}

void Delivery::take_requests() {
    thread_.do_errands();
    wake_at_ns_ = steady_ns();
}

void Delivery::take_news() {
    const i64 now = steady_ns();
    for (const u64 key : watch_.came()) {
        const auto found = channels_.find(key);
        if (found == channels_.end()) continue;
        found->second.awaits = false;
        found->second.recovered->readers_moved();
        found->second.after_batch(now);
        wake_at_ns_ = std::min(wake_at_ns_, found->second.wake_at_ns());
    }
}

// Readers that make no room for long are waited for by their doorbell, not by the clock.
void Delivery::await_readers(Channel& channel) {
    if (channel.awaits || !channel.recovered || !channel.recovered->stuck()) return;
    Doorbell& bell = *reinterpret_cast<Doorbell*>(channel.mirror->ring().bell_memory());
    const u32 seen = bell.space_bell.load();
    bell.space_waiting.store(1);
    if (channel.recovered->moved()) return channel.recovered->readers_moved();
    channel.awaits = true;
    watch_.add(channel.mirror->spec().key, BellWatch::room(channel.mirror, bell, seen));
}

void Delivery::run() {
    while (!thread_.stopping()) {
        if (turn_.load() != Turn::thread && !take_turn()) continue;
        const bool came = work(futex::kSliceNs);
        if (came && wanted_.exchange(false)) give_turn();
    }
    while (turn_.load() != Turn::thread) take_turn();
    for (auto& [key, channel] : channels_) channel.mirror->close();
}

// Receive once, sleeping no longer than that, and do what is due. Whether something came.
bool Delivery::work(i64 for_ns) {
    if (thread_.asked()) take_requests();
    if (news_.exchange(false)) take_news();
    bool came;
    if (for_ns <= 0)
        came = receive(socket_.get(), MSG_DONTWAIT);
    else if (for_ns >= futex::kSliceNs && more_sockets_.empty() && far_off())
        came = sleep_receiving();
    else
        came = wait(for_ns >= futex::kSliceNs ? wake_at_ns_ : std::min(wake_at_ns_, steady_ns() + for_ns));
    if (wake_at_ns_ != kForever) tick();
    return came;
}

// ---- whose turn it is

// Ends the sleep of whoever receives, and the thread's if nobody does.
void Delivery::rouse() {
    wake_receiver(socket_.get());
    if (attended_) look_up_after(1);
}

void Delivery::look_up_after(i64 for_ns) {
    set_.store(true);
    const itimerspec at{{0, 0}, {0, for_ns}};
    timerfd_settime(look_up_.get(), 0, &at, nullptr);
}

// The thread, while it has not the turn: sleep until it is time to look up, and take it if nobody wants it.
bool Delivery::take_turn() {
    u64 expirations;
    if (::read(look_up_.get(), &expirations, sizeof expirations) != sizeof expirations) return false;
    // In this order: a reader that leaves later finds the timer not set, and sets it.
    set_.store(false);
    const u64 entries = entries_.load();
    const bool here = std::exchange(entries_seen_, entries) != entries;
    if (here && !thread_.asked() && !thread_.stopping()) {
        if (turn_.load() == Turn::nobody) look_up_after(kAbsentNs);
        return false;
    }
    Turn nobodys = Turn::nobody;
    if (!turn_.compare_exchange_strong(nobodys, Turn::thread)) return false;
    add(taken_, 1);
    return true;
}

// The reader was woken by what came just now, or is about to sleep on the bell: that is rung once more when the turn is
// free.
void Delivery::give_turn() {
    if (channels_.size() != 1) return;
    const std::shared_ptr<Mirror> mirror = channels_.begin()->second.mirror;  // the reader may close it at once
    entries_seen_ = entries_.load();
    turn_.store(Turn::nobody);
    look_up_after(2 * kAbsentNs);
    Doorbell& bell = *reinterpret_cast<Doorbell*>(mirror->ring().bell_memory());
    bell.bell.fetch_add(1);
    futex::wake_all(bell.bell);
}

bool Delivery::enter() {
    Turn nobodys = Turn::nobody;
    if (attended_ && !thread_.stopping() && turn_.compare_exchange_strong(nobodys, Turn::reader)) return true;
    wanted_.store(true);
    return false;
}

futex::WaitResult Delivery::receive(i64 for_ns) { return work(for_ns) ? futex::WaitResult::woken : futex::WaitResult::timeout; }

void Delivery::leave() {
    add(entries_, 1);
    turn_.store(Turn::nobody);
    if (!set_.load()) look_up_after(kAbsentNs);
}

// ---- receiving

// Whether nothing is due soon. Deadlines of a stream that flows move away all the time, so before one that has come
// close is believed, it is asked for again; not more often than the asking is worth.
bool Delivery::far_off() {
    if (wake_at_ns_ == kForever) return true;
    const i64 now = steady_ns();
    if (wake_at_ns_ - now > kSoonNs) return true;
    if (now - asked_ns_ < static_cast<i64>(channels_.size()) * kAskingNs) return false;
    asked_ns_ = now;
    wake_at_ns_ = kForever;
    for (const auto& [key, channel] : channels_) wake_at_ns_ = std::min(wake_at_ns_, channel.wake_at_ns());
    return wake_at_ns_ == kForever || wake_at_ns_ - now > kSoonNs;
}

// In the call that receives, for a slice of time, or a tick of the kernel's while something is due. It is not changed
// back as soon as nothing is: between two packets of a stream nothing is due for a moment, again and again.
bool Delivery::sleep_receiving() {
    if (wake_at_ns_ != kForever) limit_receiving(kTickNs);
    const bool came = receive(socket_.get(), MSG_WAITFORONE);
    if (!came && wake_at_ns_ == kForever) limit_receiving(futex::kSliceNs);
    return came;
}

void Delivery::limit_receiving(i64 for_ns) {
    if (std::exchange(limit_ns_, for_ns) == for_ns) return;
    const timeval limit{0, for_ns / 1000};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

bool Delivery::wait(i64 until_ns) {
    const bool due = until_ns <= steady_ns();
    if (!due) poller_.not_after(until_ns);
    bool came = false;
    poller_.ready(!due, [&](int socket) { came |= receive(socket, MSG_DONTWAIT); });
    return came;
}

bool Delivery::receive(int socket, int flags) {
    const std::size_t n = intake_.receive(socket, flags);
    if (n == 0) return false;
    // A channel opened before its first datagram was sent is known here before it is looked for.
    if (thread_.asked()) take_requests();
    add(counters_.datagrams, n);
    const i64 now = steady_ns();
    for (std::size_t i = 0; i < n; ++i) handle(intake_.at(i), {now, intake_.kernel_ns(i)}, socket != socket_.get());
    for (Channel* channel : touched_) {
        channel->mirror->in_hand(0);
        channel->after_batch(now);
        await_readers(*channel);
        wake_at_ns_ = std::min(wake_at_ns_, channel->wake_at_ns());
    }
    touched_.clear();
    return true;
}

void Delivery::handle(std::span<std::byte> datagram, const Moment& moment, bool by_group) {
    if (datagram.empty()) return;
    wire::Control control;
    switch (wire::parse_control_untrusted(datagram, control)) {
        case wire::Parse::ok: break;
        case wire::Parse::truncated: return add(counters_.truncated, 1);
        case wire::Parse::foreign: return add(counters_.foreign, 1);
        case wire::Parse::newer: return add(counters_.newer, 1);
        case wire::Parse::malformed: return add(counters_.malformed, 1);
    }
    const auto found = channels_.find(control.key);
    if (seal::Opener* const opener = found == channels_.end() ? nullptr : found->second.mirror->opener()) {
        std::size_t length = datagram.size();
        if (opener->open(datagram.data(), length) != seal::Verdict::ok) return;
        datagram = datagram.first(length);
    }
    if (found != channels_.end()) found->second.mirror->in_hand(moment.kernel_ns);
    if (found != channels_.end() && found->second.recovered) {
        found->second.recovered->on_datagram(datagram, moment.now_ns, by_group);
    } else {
        wire::Header header;
        std::span<const std::byte> piece;
        const wire::Parse parse = wire::parse_untrusted(datagram, header, piece);
        if (parse == wire::Parse::truncated) return add(counters_.truncated, 1);
        if (parse != wire::Parse::ok) return add(counters_.malformed, 1);
        if (found == channels_.end()) return add(counters_.stranger, 1);
        found->second.mirror->accept(header, piece, moment.now_ns);
    }
    // One batch is mostly of one channel.
    if (touched_.empty() || touched_.back() != &found->second) touched_.push_back(&found->second);
}

void Delivery::tick() {
    const i64 now = steady_ns();
    if (now < wake_at_ns_) return;
    wake_at_ns_ = kForever;
    for (auto& [key, channel] : channels_) {
        if (channel.wake_at_ns() <= now) {
            channel.tick(now);
            await_readers(channel);
        }
        wake_at_ns_ = std::min(wake_at_ns_, channel.wake_at_ns());
    }
}

}  // namespace ringcast
