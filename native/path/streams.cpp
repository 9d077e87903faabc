#include "path/streams.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "ring/counters.hpp"
#include "ring/failure.hpp"

namespace ringcast {
namespace {

constexpr std::size_t kStreamBuffer = 256 * 1024;

}  // namespace

// One stream of frames. Small messages are parsed out of a buffer, the bytes of long ones are read into the ring.
class Streams::Stream {
public:
    enum class Step { again, drained, paused, ended };

    Stream(std::shared_ptr<Mirror> mirror_, Descriptor fd_) : mirror(std::move(mirror_)), fd(std::move(fd_)), buffer_(kStreamBuffer) {}

    // Read until the kernel has no more (`drained`), the ring no room (`paused`), or the other side is gone.
    Step pump() {
        for (int rounds = 0; rounds < 16; ++rounds) {
            const Step step = long_at_ != nullptr ? fill_long() : fill_buffer();
            if (step != Step::again) return step;
        }
        return Step::again;
    }

    std::shared_ptr<Mirror> mirror;
    Descriptor fd;
    bool paused = false;

private:
    Step outcome(ssize_t n) const {
        if (n > 0) return Step::again;
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Step::drained;
        return Step::ended;
    }

    Step fill_long() {
        const ssize_t n = ::read(fd.get(), long_at_ + long_have_, long_.length - long_have_);
        if (const Step step = outcome(n); step != Step::again) return step;
        long_have_ += static_cast<u32>(n);
        if (long_have_ == long_.length) {
            mirror->complete(long_);
            long_at_ = nullptr;
        }
        return Step::again;
    }

    Step fill_buffer() {
        if (const Step step = parse(); step != Step::again) return step;
        if (long_at_ != nullptr) return Step::again;
        const ssize_t n = ::read(fd.get(), buffer_.data() + have_, buffer_.size() - have_);
        if (const Step step = outcome(n); step != Step::again) return step;
        have_ += static_cast<std::size_t>(n);
        return parse();
    }

    Step parse() {
        std::size_t at = 0;
        Step step = Step::again;
        while (have_ - at >= wire::kHeaderBytes) {
            wire::Header h;
            std::memcpy(&h, buffer_.data() + at, wire::kHeaderBytes);
            if (h.magic != wire::kMagic || h.version != wire::kVersion || h.kind != wire::Kind::data || h.key != mirror->spec().key ||
                h.offset != 0 || h.chunk != 0 || h.length > mirror->ring().geometry().capacity || !mirror->wanted(h)) {
                step = Step::ended;  // a stream has no next datagram to wait for: nothing after this makes sense
                break;
            }
            const std::size_t rest = have_ - at - wire::kHeaderBytes;
            const bool is_long = h.length > kStreamBuffer / 4;
            if (!is_long && rest < h.length) break;
            if (!mirror->room(h.length)) {
                step = Step::paused;
                break;
            }
            std::byte* to = mirror->claim(h.length);
            const std::size_t here = std::min<std::size_t>(rest, h.length);
            copy_in(to, buffer_.data() + at + wire::kHeaderBytes, here);
            at += wire::kHeaderBytes + here;
            if (here == h.length) {
                mirror->complete(h);
                continue;
            }
            long_ = h;
            long_at_ = to;
            long_have_ = static_cast<u32>(here);
            break;
        }
        if (at > 0) {
            std::memmove(buffer_.data(), buffer_.data() + at, have_ - at);
            have_ -= at;
        }
        return step;
    }

    std::vector<std::byte> buffer_;
    std::size_t have_ = 0;
    wire::Header long_;
    std::byte* long_at_ = nullptr;
    u32 long_have_ = 0;
};

Streams::Streams() : epoll_(epoll_create1(EPOLL_CLOEXEC)), wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (epoll_.get() < 0 || wakeup_.get() < 0) throw OsRefused("cannot watch sockets", errno);
    epoll_event event{EPOLLIN, {.ptr = nullptr}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Streams::~Streams() { close(); }

void Streams::close() {
    closing_.store(true);
    eventfd_write(wakeup_.get(), 1);
    if (thread_.joinable()) thread_.join();
}

template <typename Add>
void Streams::request(Add&& add) {
    {
        std::lock_guard lock(mutex_);
        add();
        requests_.store(true);
    }
    eventfd_write(wakeup_.get(), 1);
}

std::shared_ptr<Mirror> Streams::open(const ChannelSpec& spec) {
    auto mirror = std::make_shared<Mirror>(spec);
    request([&] { new_mirrors_.push_back(mirror); });
    return mirror;
}

void Streams::close_channel(u64 key) {
    request([&] { closed_.push_back(key); });
}

void Streams::attach_fanout(u64 key, Descriptor socket) {
    request([&] { new_fanouts_.emplace_back(key, std::move(socket)); });
}

void Streams::add_stream(u64 key, Descriptor stream) {
    request([&] { new_streams_.emplace_back(key, std::move(stream)); });
}

std::vector<u64> Streams::ended() {
    std::lock_guard lock(mutex_);
    return std::exchange(ended_, {});
}

void Streams::take_requests() {
    requests_.store(false);
    std::lock_guard lock(mutex_);
    for (auto& mirror : new_mirrors_) mirrors_[mirror->spec().key] = mirror;
    new_mirrors_.clear();
    for (auto& [key, fd] : new_fanouts_)
        if (const auto found = mirrors_.find(key); found != mirrors_.end()) found->second->ring().attach_fanout(std::move(fd));
    new_fanouts_.clear();
    for (auto& [key, fd] : new_streams_) {
        const auto found = mirrors_.find(key);
        if (found == mirrors_.end()) continue;
        auto stream = std::make_unique<Stream>(found->second, std::move(fd));
        epoll_event event{EPOLLIN, {.ptr = stream.get()}};
        if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stream->fd.get(), &event) == 0) streams_.push_back(std::move(stream));
    }
    new_streams_.clear();
    for (const u64 key : closed_) {
        forget([&](const Stream& s) { return s.mirror->spec().key == key; });
        mirrors_.erase(key);
    }
    closed_.clear();
}

void Streams::run() {
    thread_id_.store(static_cast<int>(syscall(SYS_gettid)));
    std::array<epoll_event, 64> events;
    bool paused = false;
    while (!closing_.load()) {
        if (requests_.load()) take_requests();
        const int n = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), paused ? 1 : -1);
        for (int i = 0; i < n; ++i) {
            if (events[static_cast<std::size_t>(i)].data.ptr != nullptr) {
                serve(static_cast<Stream*>(events[static_cast<std::size_t>(i)].data.ptr));
                continue;
            }
            eventfd_t ignored;
            eventfd_read(wakeup_.get(), &ignored);
        }
        paused = retry_paused();
    }
}

void Streams::serve(Stream* stream) {
    const Stream::Step step = stream->pump();
    stream->mirror->announce();
    if (step == Stream::Step::ended) return end(stream);
    const bool paused = step == Stream::Step::paused;
    if (paused == stream->paused) return;
    stream->paused = paused;
    epoll_event event{paused ? 0u : static_cast<u32>(EPOLLIN), {.ptr = stream}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, stream->fd.get(), &event);
}

bool Streams::retry_paused() {
    // Readers make room on a futex, which epoll cannot watch, and part of what waits for it is in our own buffer.
    std::vector<Stream*> paused;
    for (const auto& stream : streams_)
        if (stream->paused) paused.push_back(stream.get());
    for (Stream* stream : paused) serve(stream);
    return std::any_of(streams_.begin(), streams_.end(), [](const auto& s) { return s->paused; });
}

void Streams::end(Stream* stream) {
    {
        std::lock_guard lock(mutex_);
        ended_.push_back(stream->mirror->spec().key);
    }
    forget([&](const Stream& s) { return &s == stream; });
}

template <typename Which>
void Streams::forget(Which&& which) {
    std::erase_if(streams_, [&](const auto& s) {
        if (!which(*s)) return false;
        // Closing our descriptor would not do: whoever passed it may have it open still, and events would go on to come
        // for a stream that is gone.
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, s->fd.get(), nullptr);
        return true;
    });
}

}  // namespace ringcast
