// A value that one thread writes and any thread may read: what it was lately. It orders nothing else, so it costs its
// writer no more than a plain variable.
#pragma once

#include <atomic>

namespace ringcast {

template <typename T>
class Relaxed {
public:
    Relaxed(T value = {}) : value_(value) {}
    Relaxed(const Relaxed& other) : value_(T(other)) {}
    Relaxed& operator=(const Relaxed& other) { return *this = T(other); }
    Relaxed& operator=(T value) {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    Relaxed& operator+=(T more) { return *this = T(*this) + more; }
    Relaxed& operator++() { return *this += 1; }
    operator T() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<T> value_;
};

}  // namespace ringcast
