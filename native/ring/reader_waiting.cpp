// How a reader sleeps: on the doorbells of its rings, on a mailbox, or on an eventfd; and how it spins before.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "ring/reader.hpp"

namespace ringcast {
namespace {

constexpr i64 kSweepNs = 1'000'000'000;
constexpr i64 kBusySliceNs = 2'000'000;
// Who was woken by so many messages in a row, each within a slice of time, sleeps without a timer.
constexpr u32 kShortSleeps = 16;

}  // namespace

bool Reader::ready() {
    if (attention_.load()) return true;
    if (box_ != nullptr) return !mailbox::empty(*box_);
    for (const auto& member : active_)
        if (member->cursor->behind()) return true;
    return false;
}

bool Reader::spin_planned() {
    tell_positions();
    return spin(spin_, std::exchange(spin_planned_ns_, 0), [this] { return ready(); });
}

futex::WaitResult Reader::wait(i64 until_steady_ns) {
    i64 left = kForever;
    if (until_steady_ns != kForever) {
        left = until_steady_ns - steady_ns();
        if (left <= 0) return look_once();
    }
    if (busy_poll_) {
        tell_positions();
        return poll_busily(steady_ns() + std::min(left, kBusySliceNs));
    }
    if (std::exchange(expects_, false)) [[unlikely]] {
        tell_positions();
        if (look_out(left)) return futex::WaitResult::woken;
    }
    if (Inflow* const source = inflow(); source != nullptr && source->enter()) {
        active_[0]->cursor->publish_position();
        return take_in(*source, left);
    }
    // Before spinning, for a reliable publisher may wait for that.
    tell_positions();
    if (spin(spin_, spin_.window(), [this] { return ready(); })) return futex::WaitResult::woken;
    if (my_port_ != nullptr && box_ != nullptr) return wait_port(left);
    return slept(box_ != nullptr ? wait_mailbox(left) : wait_direct(left));
}

// What is slept on last. Without a timer while messages come quickly; without being woken for nothing while none come.
futex::WaitResult Reader::sleep_on(std::span<const futex::SeenWord> words, i64 for_ns) {
    if (for_ns < futex::kSliceNs) return futex::wait_any(words, for_ns);
    if (short_sleeps_ >= kShortSleeps) {
        if (!watched_.begin(*words[0].word)) return futex::wait_any(words, for_ns);
        const futex::WaitResult outcome = futex::wait_unbounded(words);
        watched_.end();
        return outcome;
    }
    // Python's handlers of signals run in the main thread, which looks for them after every slice.
    const bool has_signals = gettid() == process_;
    if (has_signals || !watched_.begin_quiet(*words[0].word, [](void* reader) { return static_cast<Reader*>(reader)->missed(); }, this))
        return futex::wait_any(words, for_ns);
    const futex::WaitResult outcome = futex::wait_unbounded(words, for_ns != kForever ? steady_ns() + for_ns : kForever);
    watched_.end_quiet();
    return outcome;
}

// Whether this reader sleeps though there is something for it. Called by the process's watch while it sleeps.
bool Reader::missed() {
    if (ready() || (inflow() != nullptr && inflow()->vacant())) return true;
    const i64 now = steady_ns();
    if (box_ == nullptr || now < next_sweep_ns_) return false;
    if (std::any_of(active_.begin(), active_.end(), [](const auto& member) { return member->cursor->behind(); })) return true;
    next_sweep_ns_ = now + kSweepNs;
    return false;
}

futex::WaitResult Reader::slept(futex::WaitResult outcome) {
    woken_ = outcome == futex::WaitResult::woken && ready();
    short_sleeps_ = woken_ ? short_sleeps_ + 1 : 0;
    return outcome;
}

// Where this process fills the ring, looking is receiving: nothing has to wake anybody.
futex::WaitResult Reader::poll_busily(i64 until_steady_ns) {
    Inflow* const source = inflow();
    if (source != nullptr && source->enter()) {
        while (!ready() && steady_ns() < until_steady_ns) source->receive(0);
        source->leave();
        return ready() ? futex::WaitResult::woken : futex::WaitResult::timeout;
    }
    for (;;) {
        for (int i = 0; i < 64; ++i) {
            if (ready()) return futex::WaitResult::woken;
            relax_cpu();
        }
        if (steady_ns() >= until_steady_ns) return futex::WaitResult::timeout;
    }
}

// For what was announced. Where this process fills the ring, looking is receiving.
bool Reader::look_out(i64 for_ns) {
    awaits_ = true;
    const i64 now = steady_ns(), window_ns = std::min(look_out_.window(now), for_ns);
    if (window_ns <= 0) return false;
    const bool came = look_out_until(now + window_ns);
    came ? look_out_.succeeded() : look_out_.failed();
    return came;
}

bool Reader::look_out_until(i64 until_steady_ns) {
    Inflow* const source = inflow();
    const bool mine = source != nullptr && source->enter();
    const bool came = look_until(until_steady_ns, [&] {
        if (mine && !ready()) source->receive(0);
        return ready();
    });
    if (mine) source->leave();
    return came;
}

// For whoever has no time to wait: what has come, though nobody has received it yet.
futex::WaitResult Reader::look_once() {
    Inflow* const source = inflow();
    if (source == nullptr) return futex::WaitResult::timeout;
    if (source->enter()) return take_in(*source, 0);
    return ready() ? futex::WaitResult::woken : futex::WaitResult::timeout;
}

// Between `enter` and `leave`. What came before may be in the ring already.
futex::WaitResult Reader::take_in(Inflow& source, i64 for_ns) {
    takes_in_.store(true);
    futex::WaitResult outcome = futex::WaitResult::woken;
    if (!ready() && !spin_receiving(source, for_ns)) {
        outcome = source.receive(std::min(for_ns, futex::kSliceNs));
        woken_ = for_ns > 0 && outcome == futex::WaitResult::woken && ready();
    }
    takes_in_.store(false, std::memory_order_relaxed);
    source.leave();
    return ready() ? futex::WaitResult::woken : outcome;
}

// Before that sleep as before any other: while it pays.
bool Reader::spin_receiving(Inflow& source, i64 for_ns) {
    const i64 window_ns = for_ns > 0 ? std::min(spin_.window(), for_ns) : 0;
    return spin(spin_, window_ns, [&] {
        source.receive(0);
        return ready();
    });
}

std::size_t Reader::watch_bells(const std::vector<MemberPtr>& members, std::span<futex::SeenWord> out) {
    std::size_t n = 0;
    for (const auto& member : members) {
        if (n == out.size()) break;
        Doorbell& bell = member->cursor->bell();
        out[n++] = {&bell.bell, bell.bell.load()};
        bell.waiting.store(1);
    }
    return n;
}

futex::WaitResult Reader::wait_direct(i64 for_ns) {
    std::array<futex::SeenWord, futex::kMaxVector> watches;
    std::size_t n = watch_bells(active_, watches);
    if (n == 0) watches[n++] = {&poked_, poked_.load()};
    on_bells_.store(true);
    // After the bell was read: it is rung when the turn to receive becomes free.
    const bool turn = inflow() != nullptr && inflow()->vacant();
    futex::WaitResult outcome = futex::WaitResult::woken;
    if (!ready() && !turn) outcome = sleep_on({watches.data(), n}, for_ns);
    on_bells_.store(false, std::memory_order_relaxed);
    return outcome;
}

futex::WaitResult Reader::wait_mailbox(i64 for_ns) {
    const futex::SeenWord bell{&box_->bell, box_->bell.load()};
    box_->sleeping.store(1);
    if (ready()) return futex::WaitResult::woken;
    const futex::WaitResult outcome = sleep_on({&bell, 1}, for_ns);
    sweep();
    return outcome;
}

futex::WaitResult Reader::wait_port(i64 for_ns) {
    my_port_->clear();
    if (ready()) return futex::WaitResult::woken;
    pollfd fd{my_port_->eventfd.get(), POLLIN, 0};
    const int ms = static_cast<int>(std::min(for_ns, futex::kSliceNs) / 1'000'000) + 1;
    const int rc = ::poll(&fd, 1, ms);
    const bool interrupted = rc < 0 && errno == EINTR;
    sweep();
    if (interrupted) return futex::WaitResult::interrupted;
    return rc > 0 ? futex::WaitResult::woken : futex::WaitResult::timeout;
}

void Reader::sweep() {
    // A publisher killed between its tail and its bit leaves a message that nobody announced.
    const i64 now = steady_ns();
    if (now < next_sweep_ns_) return;
    next_sweep_ns_ = now + kSweepNs;
    heat_all();
}

}  // namespace ringcast
