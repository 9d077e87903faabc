// An eventfd that the kernel makes readable when a word of shared memory is woken.
#include "system/futex_signal.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <thread>

#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

struct Signalled {
    bool readable(int wait_ms = 0) const {
        pollfd seen{fd.get(), POLLIN, 0};
        int rc;
        while ((rc = ::poll(&seen, 1, wait_ms)) < 0 && errno == EINTR) {}
        return rc == 1;
    }
    void read() {
        eventfd_t ignored;
        eventfd_read(fd.get(), &ignored);
        signal->forget();
    }

    Descriptor fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::unique_ptr<futex::Signal> signal = futex::Signal::make(fd.get());
};

void wake(std::atomic<u32>& word) {
    word.fetch_add(1);
    futex::wake_all(word);
}

constexpr int kSignalMs = 30'000;

}  // namespace

TEST(futex_signal, tells_of_each_word_once_until_it_is_armed_again) {
    Signalled one;
    if (!one.signal) return;  // a kernel without it
    std::atomic<u32> words[3] = {};
    for (u32 count = 1; count <= 3; ++count)
        for (std::atomic<u32>& word : words) {
            const futex::SeenWord all[] = {{&words[0], words[0]}, {&words[1], words[1]}, {&words[2], words[2]}};
            one.signal->arm(count == 1 ? std::span(all) : std::span(all).subspan(static_cast<std::size_t>(&word - words), 1));
            CHECK(!one.readable());
            CHECK(!one.signal->fired());
            wake(word);
            CHECK(one.readable(kSignalMs));
            CHECK(one.signal->fired());
            one.read();
            CHECK(!one.signal->fired());
            wake(word);  // nobody is armed
            CHECK(!one.readable());
        }
}

TEST(futex_signal, a_word_that_changed_before_is_told_at_once) {
    Signalled one;
    if (!one.signal) return;
    std::atomic<u32> word{7}, other{0};
    const futex::SeenWord alone[] = {{&word, 6}}, both[] = {{&other, 0}, {&word, 6}};
    one.signal->arm(alone);
    CHECK(one.readable(kSignalMs));
    one.read();
    one.signal->arm(both);
    CHECK(one.readable(kSignalMs));
}

TEST(futex_signal, armed_with_other_words_it_forgets_those_before) {
    Signalled one;
    if (!one.signal) return;
    std::atomic<u32> before{0}, now{0};
    for (int i = 0; i < 100; ++i) {
        const futex::SeenWord first[] = {{&before, before}}, second[] = {{&now, now}};
        one.signal->arm(first);
        one.signal->arm(second);
        while (one.readable()) one.read();  // a cancelled wait tells of itself
        wake(before);
        CHECK(!one.signal->fired());
        wake(now);
        CHECK(one.readable(kSignalMs));
        while (!one.signal->fired()) CHECK(one.readable(kSignalMs));
        one.read();
    }
}

TEST(futex_signal, armed_twice_with_the_same_it_waits_once) {
    Signalled one;
    if (!one.signal) return;
    std::atomic<u32> word{0};
    const futex::SeenWord seen[] = {{&word, 0}};
    for (int i = 0; i < 100; ++i) one.signal->arm(seen);
    one.signal->arm({});
    wake(word);
    CHECK(one.readable(kSignalMs));
    eventfd_t count = 0;
    CHECK_EQ(eventfd_read(one.fd.get(), &count), 0);
    CHECK_EQ(count, eventfd_t{1});
}

TEST(futex_signal, none_is_missed_while_another_thread_rings) {
    Signalled one;
    if (!one.signal) return;
    constexpr u32 kRings = 20'000;
    std::atomic<u32> word{0};
    std::atomic<u32> seen{0};
    std::jthread ringing([&] {
        for (u32 i = 0; i < kRings; ++i) {
            wake(word);
            while (i % 3 == 0 && seen.load() <= i) std::this_thread::yield();
        }
    });
    while (seen.load() < kRings) {
        const futex::SeenWord now[] = {{&word, word.load()}};
        if (now[0].value == seen.load()) {
            one.signal->arm(now);
            CHECK(one.readable(kSignalMs));
            one.read();
        }
        seen.store(word.load());
    }
}
