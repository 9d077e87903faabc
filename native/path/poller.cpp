#include "path/poller.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "ring/failure.hpp"
#include "system/futex.hpp"

namespace ringcast {

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)), timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (epoll_.get() < 0 || timer_.get() < 0) throw OsRefused("cannot wait for sockets", errno);
    // At its edge: one that has rung need not be read, it is told of once.
    epoll_event event{EPOLLIN | EPOLLET, {.fd = timer_.get()}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &event);
}

void Poller::add(int socket) {
    epoll_event event{EPOLLIN, {.fd = socket}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) != 0) throw OsRefused("cannot wait for a socket", errno);
}

void Poller::not_after(i64 at_ns) {
    if (at_ns >= set_to_ns_) return;
    set_to_ns_ = at_ns;
    ++settings_;
    // Zero would mean never.
    const i64 at = std::max<i64>(at_ns, 1);
    const itimerspec when{{0, 0}, {static_cast<time_t>(at / 1'000'000'000), static_cast<long>(at % 1'000'000'000)}};
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

int Poller::collect(bool sleep, int* found) {
    epoll_event events[kMost];
    const int n = epoll_wait(epoll_.get(), events, kMost, sleep ? static_cast<int>(futex::kSliceNs / 1'000'000) : 0);
    int sockets = 0;
    for (int i = 0; i < n; ++i) {
        if (events[i].data.fd == timer_.get())
            set_to_ns_ = kForever;
        else
            found[sockets++] = events[i].data.fd;
    }
    return sockets;
}

}  // namespace ringcast
