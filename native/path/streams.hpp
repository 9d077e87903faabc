// The thread that takes streams of frames (TCP) from other nodes and puts them into mirror rings.
//
// It never waits for a reader: a stream whose reliable readers are slow is simply not read until they made room, and
// the kernels' windows tell the sender.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "path/mirror.hpp"

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
    int thread_id() const { return thread_id_.load(); }
    void close();

private:
    class Stream;

    template <typename Add>
    void request(Add&& add);
    void take_requests();
    void run();
    void serve(Stream* stream);
    bool retry_paused();
    void end(Stream* stream);
    template <typename Which>
    void forget(Which&& which);

    Descriptor epoll_, wakeup_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<Mirror>> new_mirrors_;
    std::vector<std::pair<u64, Descriptor>> new_streams_;
    std::vector<std::pair<u64, Descriptor>> new_fanouts_;
    std::vector<u64> closed_;
    std::vector<u64> ended_;
    std::atomic<bool> requests_{false};
    std::atomic<bool> closing_{false};
    std::atomic<int> thread_id_{0};

    // ---- the thread's own
    std::unordered_map<u64, std::shared_ptr<Mirror>> mirrors_;
    std::vector<std::unique_ptr<Stream>> streams_;
    std::thread thread_;
};

}  // namespace ringcast
