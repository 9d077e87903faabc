#include "path/delivery.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>

#include "ring/counters.hpp"

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

Delivery::Delivery(Descriptor socket) : socket_(std::move(socket)), outgoing_(socket_.get()), intake_(kDatagramBytes), watch_([this] {
    news_.store(true);
    wake_receiver(socket_.get());
}), thread_([this] { wake_receiver(socket_.get()); }) {
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

std::shared_ptr<Mirror> Delivery::open(const ChannelSpec& spec, RecoverySpec recovery) {
    ChannelSpec guarded = spec;
    guarded.guarded = true;
    guarded.kept_bytes = u64{recovery.stack.window.cells} * recovery.stack.window.cell_bytes;
    auto mirror = std::make_shared<Mirror>(guarded);
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
        if (thread_.asked()) take_requests();
        if (news_.exchange(false)) take_news();
        if (more_sockets_.empty() && far_off())
            sleep_receiving();
        else
            wait();
        if (wake_at_ns_ != kForever) tick();
    }
    for (auto& [key, channel] : channels_) channel.mirror->close();
}

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
void Delivery::sleep_receiving() {
    if (wake_at_ns_ != kForever) limit_receiving(kTickNs);
    if (!receive(socket_.get(), MSG_WAITFORONE) && wake_at_ns_ == kForever) limit_receiving(futex::kSliceNs);
}

void Delivery::limit_receiving(i64 for_ns) {
    if (std::exchange(limit_ns_, for_ns) == for_ns) return;
    const timeval limit{0, for_ns / 1000};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void Delivery::wait() {
    const bool due = wake_at_ns_ <= steady_ns();
    if (!due) poller_.not_after(wake_at_ns_);
    poller_.ready(!due, [this](int socket) { receive(socket, MSG_DONTWAIT); });
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
