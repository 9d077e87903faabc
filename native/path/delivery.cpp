#include "path/delivery.hpp"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "ring/counters.hpp"

namespace ringcast {
namespace {

// An empty datagram to ourselves wakes the thread. Should it get lost, the next slice of time does.
void wake(int socket) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
    if (auto* v4 = reinterpret_cast<sockaddr_in*>(&address); address.ss_family == AF_INET && v4->sin_addr.s_addr == htonl(INADDR_ANY))
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (auto* v6 = reinterpret_cast<sockaddr_in6*>(&address); address.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
        v6->sin6_addr = in6addr_loopback;
    sendto(socket, nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), length);
}

}  // namespace

i64 Delivery::Channel::wake_at_ns() const {
    const i64 at = mirror->wake_at_ns();
    return recovered ? std::min(at, recovered->wake_at_ns()) : at;
}

void Delivery::Channel::tick(i64 now_ns) {
    if (recovered) recovered->tick(now_ns);
    if (mirror->wake_at_ns() <= now_ns) mirror->tick(now_ns);
    settle(now_ns);
}

void Delivery::Channel::settle(i64 now_ns) {
    mirror->announce();
    if (recovered) recovered->settle(now_ns);
}

Delivery::Delivery(Descriptor socket) : socket_(std::move(socket)), outgoing_(socket_.get()), buffers_(new std::byte[kBatch * kDatagramBytes]) {
    wait_.add(socket_.get());
    limit_receiving(futex::kSliceNs);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Delivery::~Delivery() { close(); }

void Delivery::close() {
    closing_.store(true);
    wake(socket_.get());
    if (thread_.joinable()) thread_.join();
}

template <typename Add>
void Delivery::request(Add&& errand) {
    {
        std::lock_guard lock(mutex_);
        errands_.emplace_back(std::forward<Add>(errand));
        requests_.store(true);
    }
    wake(socket_.get());
}

std::shared_ptr<Mirror> Delivery::open(const ChannelSpec& spec) {
    auto mirror = std::make_shared<Mirror>(spec);
    request([this, mirror] { channels_[mirror->spec().key] = {mirror, nullptr}; });
    return mirror;
}

std::shared_ptr<Mirror> Delivery::open(const ChannelSpec& spec, RecoverySpec recovery) {
    auto mirror = std::make_shared<Mirror>(spec);
    // Made here, so that a stack that cannot be is refused to whoever asks for it.
    auto recovered = std::make_shared<std::unique_ptr<Recovered>>(std::make_unique<Recovered>(mirror, std::move(recovery), outgoing_));
    request([this, mirror, recovered] { channels_[mirror->spec().key] = {mirror, std::move(*recovered)}; });
    return mirror;
}

void Delivery::close_channel(u64 key) {
    request([this, key] {
        if (const auto found = channels_.extract(key)) found.mapped().mirror->close();
    });
}

void Delivery::attach_fanout(u64 key, Descriptor socket) {
    request([this, key, kept = std::make_shared<Descriptor>(std::move(socket))] {
        if (const auto found = channels_.find(key); found != channels_.end()) found->second.mirror->ring().attach_fanout(std::move(*kept));
    });
}

void Delivery::retune(u64 key, const recovery::Tuning& tuning, const recovery::LossSpec& loss, u64 seed, bool patient) {
    request([=, this] {
        if (const auto found = channels_.find(key); found != channels_.end() && found->second.recovered)
            found->second.recovered->retune(tuning, loss, seed, patient);
    });
}

void Delivery::regroup(u64 key, std::vector<Endpoint> peers) {
    request([this, key, peers = std::move(peers)] {
        if (const auto found = channels_.find(key); found != channels_.end() && found->second.recovered) found->second.recovered->regroup(peers);
    });
}

void Delivery::add_socket(Descriptor socket) {
    request([this, kept = std::make_shared<Descriptor>(std::move(socket))] {
        wait_.add(kept->get());
        more_sockets_.push_back(std::move(*kept));
    });
}

void Delivery::take_requests() {
    requests_.store(false);
    std::vector<std::function<void()>> errands;
    {
        std::lock_guard lock(mutex_);
        errands.swap(errands_);
    }
    for (const auto& errand : errands) errand();
    wake_at_ns_ = steady_ns();
}

void Delivery::run() {
    thread_id_.store(static_cast<int>(syscall(SYS_gettid)));
    while (!closing_.load()) {
        if (requests_.load()) take_requests();
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
    if (!due) wait_.not_after(wake_at_ns_);
    wait_.ready(!due, [this](int socket) { receive(socket, MSG_DONTWAIT); });
}

bool Delivery::receive(int socket, int flags) {
    std::array<mmsghdr, kBatch> vector;
    std::array<iovec, kBatch> parts;
    for (std::size_t i = 0; i < kBatch; ++i) {
        parts[i] = {buffers_.get() + i * kDatagramBytes, kDatagramBytes};
        vector[i].msg_hdr = {};
        vector[i].msg_hdr.msg_iov = &parts[i];
        vector[i].msg_hdr.msg_iovlen = 1;
    }
    const int n = recvmmsg(socket, vector.data(), kBatch, flags, nullptr);
    if (n <= 0) return false;
    // A channel opened before its first datagram was sent is known here before it is looked for.
    if (requests_.load()) take_requests();
    add(counters_.datagrams, static_cast<u64>(n));
    const i64 now = steady_ns();
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) handle({buffers_.get() + i * kDatagramBytes, vector[i].msg_len}, now, socket != socket_.get());
    for (Channel* channel : touched_) {
        channel->settle(now);
        wake_at_ns_ = std::min(wake_at_ns_, channel->wake_at_ns());
    }
    touched_.clear();
    return true;
}

void Delivery::handle(std::span<const std::byte> datagram, i64 now_ns, bool by_group) {
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
    if (found != channels_.end() && found->second.recovered) {
        found->second.recovered->on_datagram(datagram, now_ns, by_group);
    } else {
        wire::Header header;
        std::span<const std::byte> piece;
        const wire::Parse parse = wire::parse_untrusted(datagram, header, piece);
        if (parse == wire::Parse::truncated) return add(counters_.truncated, 1);
        if (parse != wire::Parse::ok) return add(counters_.malformed, 1);
        if (found == channels_.end()) return add(counters_.stranger, 1);
        found->second.mirror->accept(header, piece, now_ns);
    }
    // One batch is mostly of one channel.
    if (touched_.empty() || touched_.back() != &found->second) touched_.push_back(&found->second);
}

void Delivery::tick() {
    const i64 now = steady_ns();
    if (now < wake_at_ns_) return;
    wake_at_ns_ = kForever;
    for (auto& [key, channel] : channels_) {
        if (channel.wake_at_ns() <= now) channel.tick(now);
        wake_at_ns_ = std::min(wake_at_ns_, channel.wake_at_ns());
    }
}

}  // namespace ringcast
