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

Delivery::Delivery(Descriptor socket) : socket_(std::move(socket)), buffers_(new std::byte[kBatch * kDatagramBytes]) {
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
void Delivery::request(Add&& add) {
    {
        std::lock_guard lock(mutex_);
        add();
        requests_.store(true);
    }
    wake(socket_.get());
}

std::shared_ptr<Mirror> Delivery::open(const ChannelSpec& spec) {
    auto mirror = std::make_shared<Mirror>(spec);
    request([&] { new_mirrors_.push_back(mirror); });
    return mirror;
}

void Delivery::close_channel(u64 key) {
    request([&] { closed_.push_back(key); });
}

void Delivery::attach_fanout(u64 key, Descriptor socket) {
    request([&] { new_fanouts_.emplace_back(key, std::move(socket)); });
}

void Delivery::take_requests() {
    requests_.store(false);
    std::lock_guard lock(mutex_);
    for (auto& mirror : new_mirrors_) mirrors_[mirror->spec().key] = mirror;
    new_mirrors_.clear();
    for (auto& [key, fd] : new_fanouts_)
        if (const auto found = mirrors_.find(key); found != mirrors_.end()) found->second->ring().attach_fanout(std::move(fd));
    new_fanouts_.clear();
    for (const u64 key : closed_)
        if (const auto found = mirrors_.extract(key)) found.mapped()->close();
    closed_.clear();
}

void Delivery::run() {
    thread_id_.store(static_cast<int>(syscall(SYS_gettid)));
    while (!closing_.load()) {
        if (requests_.load()) take_requests();
        receive();
        if (wake_at_ns_ != kForever) tick();
    }
    for (auto& [key, mirror] : mirrors_) mirror->close();
}

void Delivery::receive() {
    const i64 wanted = wake_at_ns_ == kForever ? futex::kSliceNs : std::clamp<i64>(wake_at_ns_ - steady_ns(), 50'000, futex::kSliceNs);
    if (wanted != timeout_ns_) {
        timeout_ns_ = wanted;
        const timeval t{wanted / 1'000'000'000, wanted % 1'000'000'000 / 1000};
        setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    }
    std::array<mmsghdr, kBatch> vector;
    std::array<iovec, kBatch> parts;
    for (std::size_t i = 0; i < kBatch; ++i) {
        parts[i] = {buffers_.get() + i * kDatagramBytes, kDatagramBytes};
        vector[i].msg_hdr = {};
        vector[i].msg_hdr.msg_iov = &parts[i];
        vector[i].msg_hdr.msg_iovlen = 1;
    }
    const int n = recvmmsg(socket_.get(), vector.data(), kBatch, MSG_WAITFORONE, nullptr);
    if (n <= 0) return;
    // A channel opened before its first datagram was sent is known here before it is looked for.
    if (requests_.load()) take_requests();
    add(counters_.datagrams, static_cast<u64>(n));
    const i64 now = steady_ns();
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) handle({buffers_.get() + i * kDatagramBytes, vector[i].msg_len}, now);
    for (Mirror* mirror : touched_) {
        mirror->announce();
        wake_at_ns_ = std::min(wake_at_ns_, mirror->wake_at_ns());
    }
    touched_.clear();
}

void Delivery::handle(std::span<const std::byte> datagram, i64 now_ns) {
    if (datagram.empty()) return;
    wire::Header header;
    std::span<const std::byte> piece;
    switch (wire::parse_untrusted(datagram, header, piece)) {
        case wire::Parse::ok: break;
        case wire::Parse::truncated: return add(counters_.truncated, 1);
        case wire::Parse::foreign: return add(counters_.foreign, 1);
        case wire::Parse::newer: return add(counters_.newer, 1);
        case wire::Parse::malformed: return add(counters_.malformed, 1);
    }
    const auto found = mirrors_.find(header.key);
    if (found == mirrors_.end()) return add(counters_.stranger, 1);
    found->second->accept(header, piece, now_ns);
    touched_.push_back(found->second.get());
}

void Delivery::tick() {
    const i64 now = steady_ns();
    if (now < wake_at_ns_) return;
    wake_at_ns_ = kForever;
    for (auto& [key, mirror] : mirrors_) {
        if (mirror->wake_at_ns() <= now) {
            mirror->tick(now);
            mirror->announce();
        }
        wake_at_ns_ = std::min(wake_at_ns_, mirror->wake_at_ns());
    }
}

}  // namespace ringcast
