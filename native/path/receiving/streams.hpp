// The thread that takes streams of frames (TCP) from other nodes and puts them into mirror rings.
//
// It never waits for a reader: a stream whose reliable readers are slow is simply not read until they made room, and
// the kernels' windows tell the sender. Readers that are stuck cost nothing: their doorbell tells when they move.
//
// A channel has one stream at a time. A second one that knows its key is refused while the first lives: two would write
// into one ring at once.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "path/bell_watch.hpp"
#include "path/receiving/mirror.hpp"
#include "system/inheriting_mutex.hpp"
#include "system/thread.hpp"

namespace ringcast {

class Streams {
public:
    Streams();
    ~Streams();

    // ---- any thread
    std::shared_ptr<Mirror> open(const ChannelSpec& spec);
    void close_channel(u64 key);
    // A connected, non-blocking socket on which frames of channel `key` come.
    void add_stream(u64 key, Descriptor stream);
    void attach_fanout(u64 key, Descriptor socket);
    // Keys of channels whose stream ended since the last call.
    std::vector<u64> ended();
    int thread_id() const { return thread_.id(); }
    u64 failures() const { return thread_.failures(); }
    // How often the thread has woken.
    u64 rounds() const { return rounds_.load(std::memory_order_relaxed); }
    void close();

private:
    class Stream;

    template <typename Condition>
    void remove_if(Condition&& condition);
    void take_stream(u64 key, Descriptor fd);
    void take_news();
    void run();
    void serve(Stream* stream);
    void retry_paused();
    void await_readers(Stream& stream);
    void look_for_dead_readers();
    void end(Stream* stream);

    Descriptor epoll_, wakeup_;
    InheritingMutex mutex_;
    std::vector<u64> ended_;
    std::unordered_set<u64> awaiting_;  // keys of channels whose readers are waited for
    std::atomic<u64> rounds_{0};

    // ---- the thread's own
    std::unordered_map<u64, std::shared_ptr<Mirror>> mirrors_;
    std::vector<std::unique_ptr<Stream>> streams_;
    bool moved_ = false;  // whether a message was put into a ring since it was last asked
    BellWatch watch_;
    Thread thread_;
};

}  // namespace ringcast
