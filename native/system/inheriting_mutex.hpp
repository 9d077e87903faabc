// A mutex whose holder runs with the priority of whoever waits for it.
//
// Threads of a channel with a schedule meet threads of the usual policy at a few locks: two threads that send on one
// publisher, a daemon's thread that asks a delivery thread for something. Without inheritance a third thread, of a priority
// in between, could keep the holder from running and so the urgent one waiting for as long as it likes.
#pragma once

#include <pthread.h>

#include <cerrno>
#include <mutex>
#include <system_error>

namespace ringcast {

class InheritingMutex {
public:
    InheritingMutex() {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        const int error = pthread_mutex_init(&mutex_, &attributes);
        pthread_mutexattr_destroy(&attributes);
        if (error != 0) throw std::system_error(error, std::generic_category(), "cannot make a mutex");
    }
    ~InheritingMutex() { pthread_mutex_destroy(&mutex_); }
    InheritingMutex(const InheritingMutex&) = delete;
    InheritingMutex& operator=(const InheritingMutex&) = delete;

    void lock() {
        if (const int error = pthread_mutex_lock(&mutex_); error != 0) throw std::system_error(error, std::generic_category(), "cannot lock");
    }
    bool try_lock() { return pthread_mutex_trylock(&mutex_) == 0; }
    void unlock() { pthread_mutex_unlock(&mutex_); }

private:
    pthread_mutex_t mutex_;
};

}  // namespace ringcast
