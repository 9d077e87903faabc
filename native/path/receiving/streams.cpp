#include "path/receiving/streams.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "path/receiving/rest.hpp"
#include "path/receiving/sealed_stream.hpp"
#include "ring/counters.hpp"
#include "ring/failure.hpp"
#include "wire/frame.hpp"

namespace ringcast {
namespace {

constexpr std::size_t kStreamBuffer = 256 * 1024;
constexpr u32 kLeastRead = 128 * 1024;

// How long a full ring is left alone before it is looked at again: a fast reader empties it within the first, and a
// slow one is not asked more often than the last. After so many looks it is waited for by its doorbell: readers that
// move are not to pay for a sign each time.
constexpr long kShortestPauseNs = 50'000, kLongestPauseNs = 1'000'000;
constexpr u32 kMostLooks = 16;
constexpr std::ptrdiff_t kMostUnproven = 4;
constexpr int kSliceMs = static_cast<int>(futex::kSliceNs / 1'000'000);

// Until something is readable. Finer than the milliseconds of epoll_wait, and on kernels without epoll_pwait2.
void doze(int epoll, long for_ns) {
    pollfd fd{epoll, POLLIN, 0};
    const timespec limit{0, for_ns};
    ppoll(&fd, 1, &limit, nullptr);
}

}  // namespace

// One stream of frames. Small messages are parsed out of a buffer, the bytes of long ones are read into the ring.
class Streams::Stream {
public:
    enum class Step { again, drained, resting, paused, ended };

    Stream(std::shared_ptr<Mirror> mirror_, Descriptor fd_) : mirror(std::move(mirror_)), fd(std::move(fd_)), buffer_(kStreamBuffer), before_(mirror->spec().every) {
        if (mirror->records() != nullptr) sealed_ = std::make_unique<SealedStream>(*mirror->records());
    }

    // Read until the kernel has no more (`drained`, or `resting` where it is going to have a lot), the ring no room
    // (`paused`), or the other side is gone.
    Step pump() {
        came_ = 0;
        emptied_ = false;
        const Step step = pump_all();
        return step == Step::drained && rest_.due(came_, steady_ns()) ? Step::resting : step;
    }

    std::shared_ptr<Mirror> mirror;
    Descriptor fd;
    bool paused = false;   // not among those that epoll watches
    bool resting = false;  // and only for a moment
    bool awaits = false;   // its readers' doorbell, in the watch
    u32 fruitless = 0;     // looks that found no room
    u32 wants_bytes = 0;   // room for the message that waits
    // Whether it comes from the channel's sender, as far as can be told.
    bool proven() const { return !sealed_ || sealed_->proven(); }

private:
    Step pump_all() {
        // What was read ahead is not told of again.
        for (int rounds = 0; rounds < 16 || (sealed_ && sealed_->pending()); ++rounds) {
            const Step step = long_at_ != nullptr ? fill_long() : fill_buffer();
            if (step != Step::again) return step;
            if (emptied_) return Step::drained;
        }
        return Step::again;
    }

    Step outcome(ssize_t n) const {
        if (n > 0) return Step::again;
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Step::drained;
        return Step::ended;
    }

    ssize_t read(std::byte* to, std::size_t most) {
        const ssize_t n = sealed_ ? sealed_->read(fd.get(), to, most) : ::read(fd.get(), to, most);
        if (n > 0) came_ += static_cast<u64>(n);
        // That there was no more is known; what came since is told of again. Of sealed records some are read ahead.
        emptied_ = n > 0 && !sealed_ && static_cast<std::size_t>(n) < most;
        if (sealed_ && sealed_->forged()) mirror->forged();
        return n;
    }

    Step fill_long() {
        const ssize_t n = read(long_at_ + long_have_, long_.length - long_have_);
        if (const Step step = outcome(n); step != Step::again) return step;
        long_have_ += static_cast<u32>(n);
        wake_from(long_.length - long_have_);
        if (long_have_ == long_.length) {
            mirror->read_at(utc_ns());
            mirror->complete(long_);
            long_at_ = nullptr;
        }
        return Step::again;
    }

    // While a long message comes slowly, this thread is not woken for every packet of it. Fast ones are left alone instead:
    // what is not to be read yet, the kernel would acknowledge packet by packet. What is sealed is read record by record.
    void wake_from(u32 left) {
        if (sealed_) return;
        const int least = rest_.fast() ? 1 : static_cast<int>(std::clamp<u32>(left, 1, kLeastRead));
        if (std::exchange(wakes_from_, least) != least) setsockopt(fd.get(), SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
    }

    Step fill_buffer() {
        if (const Step step = parse(); step != Step::again) return step;
        if (long_at_ != nullptr) return Step::again;
        const ssize_t n = read(buffer_.data() + have_, buffer_.size() - have_);
        if (const Step step = outcome(n); step != Step::again) return step;
        have_ += static_cast<std::size_t>(n);
        mirror->read_at(utc_ns());
        return parse();
    }

    Step parse() {
        std::size_t at = 0;
        Step step = Step::again;
        for (;;) {
            wire::Frame frame;
            const wire::Parse parsed = before_.parse_untrusted({buffer_.data() + at, have_ - at}, mirror->spec().key, frame);
            const wire::Header& h = frame.header;
            if (parsed == wire::Parse::truncated) break;
            if (parsed != wire::Parse::ok || h.length > mirror->ring().geometry().most_message() || !mirror->wanted(h)) {
                step = Step::ended;  // a stream has no next datagram to wait for: nothing after this makes sense
                break;
            }
            const std::size_t rest = have_ - at - frame.head_bytes;
            const bool is_long = h.length > kStreamBuffer / 4;
            if (!is_long && rest < h.length) break;
            if (!mirror->room(h.length)) {
                wants_bytes = h.length;
                step = Step::paused;
                break;
            }
            std::byte* to = mirror->claim(h.length);
            const std::size_t here = std::min<std::size_t>(rest, h.length);
            copy_in(to, buffer_.data() + at + frame.head_bytes, here);
            at += frame.head_bytes + here;
            before_.is(frame);
            if (here == h.length) {
                mirror->complete(h);
                continue;
            }
            long_ = h;
            long_at_ = to;
            long_have_ = static_cast<u32>(here);
            wake_from(h.length - long_have_);
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
    wire::FrameReader before_;
    Rest rest_;
    u64 came_ = 0;          // bytes, in this look
    bool emptied_ = false;  // by the last read
    int wakes_from_ = 1;
    std::unique_ptr<SealedStream> sealed_;  // none on a mesh without identities
    wire::Header long_;
    std::byte* long_at_ = nullptr;
    u32 long_have_ = 0;
};

Streams::Streams()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      watch_([this] { eventfd_write(wakeup_.get(), 1); }),
      thread_([this] { eventfd_write(wakeup_.get(), 1); }) {
    if (epoll_.get() < 0 || wakeup_.get() < 0) throw OsRefused("cannot watch sockets", errno);
    epoll_event event{EPOLLIN, {.ptr = nullptr}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event) != 0) throw OsRefused("cannot watch sockets", errno);
    thread_.start("ringcast-streams", [this] { run(); });
}

Streams::~Streams() { close(); }

void Streams::close() {
    thread_.stop();
    watch_.close();
}

std::shared_ptr<Mirror> Streams::open(const ChannelSpec& spec) {
    ChannelSpec whole = spec;
    whole.whole = true;
    whole.kept_bytes = kStreamBuffer;
    auto mirror = std::make_shared<Mirror>(whole);
    if (spec.reliable) {
        const std::lock_guard lock(mutex_);
        watch_.make_room(awaiting_.size() + 1);
        awaiting_.insert(spec.key);
    }
    thread_.ask([this, mirror] { mirrors_[mirror->spec().key] = mirror; });
    return mirror;
}

void Streams::close_channel(u64 key) {
    {
        const std::lock_guard lock(mutex_);
        awaiting_.erase(key);
    }
    thread_.ask([this, key] {
        remove_if([&](const Stream& s) { return s.mirror->spec().key == key; });
        if (const auto found = mirrors_.extract(key)) found.mapped()->close();
    });
}

void Streams::attach_fanout(u64 key, Descriptor socket) {
    thread_.ask([this, key, kept = std::make_shared<Descriptor>(std::move(socket))] {
        if (const auto found = mirrors_.find(key); found != mirrors_.end()) found->second->ring().attach_fanout(std::move(*kept));
    });
}

void Streams::add_stream(u64 key, Descriptor stream) {
    thread_.ask([this, key, kept = std::make_shared<Descriptor>(std::move(stream))] { take_stream(key, std::move(*kept)); });
}

std::vector<u64> Streams::ended() {
    std::lock_guard lock(mutex_);
    return std::exchange(ended_, {});
}

template <typename Condition>
void Streams::remove_if(Condition&& condition) {
    std::erase_if(streams_, [&](const auto& stream) {
        if (!condition(*stream)) return false;
        // Closing would not do: while whoever gave us the descriptor has his own still open, epoll would go on telling
        // of a stream that is no more.
        if (!stream->paused) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream->fd.get(), nullptr);
        if (stream->awaits) watch_.remove(stream->mirror->spec().key);
        return true;
    });
}

void Streams::take_stream(u64 key, Descriptor fd) {
    const auto found = mirrors_.find(key);
    if (found == mirrors_.end()) return;
    const auto ours = [&](const auto& s) { return s->mirror->spec().key == key; };
    // The first may have ended without having been looked at since.
    if (const auto first = std::find_if(streams_.begin(), streams_.end(), ours); first != streams_.end()) serve(first->get());
    // Of a sealed channel, anybody who saw its key can begin a stream, but only its sender can go on with it.
    if (std::count_if(streams_.begin(), streams_.end(), ours) >= kMostUnproven ||
        std::any_of(streams_.begin(), streams_.end(), [&](const auto& s) { return ours(s) && s->proven(); }))
        return found->second->refuse();
    auto stream = std::make_unique<Stream>(found->second, std::move(fd));
    epoll_event event{EPOLLIN, {.ptr = stream.get()}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stream->fd.get(), &event) != 0) throw OsRefused("cannot watch a stream", errno);
    streams_.push_back(std::move(stream));
}

void Streams::run() {
    std::array<epoll_event, 64> events;
    long pause_ns = kShortestPauseNs;
    while (!thread_.stopping()) {
        if (thread_.asked()) thread_.do_errands();
        take_news();
        const bool pausing = std::any_of(streams_.begin(), streams_.end(), [](const auto& s) { return s->paused && !s->awaits; });
        const bool awaiting = std::any_of(streams_.begin(), streams_.end(), [](const auto& s) { return s->awaits; });
        const bool resting = std::any_of(streams_.begin(), streams_.end(), [](const auto& s) { return s->resting; });
        if (pausing) doze(epoll_.get(), resting ? Rest::kNs : pause_ns);
        const int n = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), pausing ? 0 : awaiting ? kSliceMs : -1);
        add(rounds_, 1);
        for (int i = 0; i < n; ++i) {
            if (events[static_cast<std::size_t>(i)].data.ptr != nullptr) {
                serve(static_cast<Stream*>(events[static_cast<std::size_t>(i)].data.ptr));
                continue;
            }
            eventfd_t ignored;
            eventfd_read(wakeup_.get(), &ignored);
        }
        if (n == 0 && awaiting && !pausing) look_for_dead_readers();
        moved_ = false;
        retry_paused();
        pause_ns = moved_ ? kShortestPauseNs : std::min(2 * pause_ns, kLongestPauseNs);
    }
    for (auto& [key, mirror] : mirrors_) mirror->close();
}

void Streams::serve(Stream* stream) {
    const u64 before = stream->mirror->counters().messages.load(std::memory_order_relaxed);
    const Stream::Step step = stream->pump();
    stream->mirror->announce();
    if (stream->mirror->counters().messages.load(std::memory_order_relaxed) != before) moved_ = true;
    if (step == Stream::Step::ended) return end(stream);
    stream->resting = step == Stream::Step::resting;
    const bool paused = stream->resting || step == Stream::Step::paused;
    if (paused == stream->paused) return;
    stream->paused = paused;
    stream->fruitless = 0;
    // Out of the set and not merely unmasked: that the other side hung up is told whatever the mask says, again and again.
    epoll_event event{EPOLLIN, {.ptr = stream}};
    if (epoll_ctl(epoll_.get(), paused ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, stream->fd.get(), &event) != 0 && !paused) end(stream);
}

void Streams::retry_paused() {
    // Readers make room on a futex, which epoll cannot watch, and part of what waits for it is in our own buffer.
    std::vector<Stream*> paused;
    for (const auto& stream : streams_)
        if (stream->paused && !stream->awaits) paused.push_back(stream.get());
    for (Stream* stream : paused) {
        const u64 before = stream->mirror->counters().messages.load(std::memory_order_relaxed);
        const std::shared_ptr<Mirror> mirror = stream->mirror;
        serve(stream);
        if (std::none_of(streams_.begin(), streams_.end(), [&](const auto& s) { return s.get() == stream; }) || !stream->paused) continue;
        stream->fruitless = stream->resting || mirror->counters().messages.load(std::memory_order_relaxed) != before ? 0 : stream->fruitless + 1;
        if (stream->fruitless >= kMostLooks) await_readers(*stream);
    }
}

void Streams::await_readers(Stream& stream) {
    Doorbell& bell = *reinterpret_cast<Doorbell*>(stream.mirror->ring().bell_memory());
    const u32 seen = bell.space_bell.load();
    bell.space_waiting.store(1);
    // After the flag is set, against the reader who moves and then looks at the flag.
    if (stream.mirror->room(stream.wants_bytes)) return;
    stream.awaits = true;
    watch_.add(stream.mirror->spec().key, BellWatch::room(stream.mirror, bell, seen));
}

void Streams::take_news() {
    for (const u64 key : watch_.came())
        for (const auto& stream : streams_)
            if (stream->mirror->spec().key == key) stream->awaits = false, stream->fruitless = 0;
}

// A reader that was killed gives no sign.
void Streams::look_for_dead_readers() {
    for (const auto& stream : streams_) {
        if (!stream->awaits) continue;
        stream->mirror->ring().reap();
        if (!stream->mirror->room(stream->wants_bytes)) continue;
        watch_.remove(stream->mirror->spec().key);
        stream->awaits = false;
        stream->fruitless = 0;
    }
}

void Streams::end(Stream* stream) {
    // That a stranger's stream ended says nothing of the channel's.
    if (stream->proven()) {
        std::lock_guard lock(mutex_);
        ended_.push_back(stream->mirror->spec().key);
    }
    remove_if([&](const Stream& s) { return &s == stream; });
}

}  // namespace ringcast
