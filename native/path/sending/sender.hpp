// A ring's writer together with everyone it tells: what a publisher sends through.
//
// The order is ring, datagrams, wake. Waking first lets a woken reader take the publisher's core before remote nodes
// got anything.
#pragma once

#include "path/sending/fanout.hpp"
#include "ring/writer.hpp"

namespace ringcast {

class Sender : public Writer {
public:
    using Writer::Writer;

    // After one or several appends.
    void announce();

    // Whether that takes long enough for other threads to be let run meanwhile.
    bool announces_long() const {
        const u64 links = fanout_.links();
        return links != 0 && ((next_seq() - pushed_) * links > kLongPush || (next_pos() - pushed_pos_) * links >= kLongPushBytes);
    }

    // As the writer's, but those who are waited for are woken before.
    futex::WaitResult wait_for_room(std::size_t length, i64 until_steady_ns) {
        announce();
        return Writer::wait_for_room(length, until_steady_ns);
    }

    void attach_fanout(Descriptor socket);
    const LinkCounters& link_counters() const { return fanout_.counters(); }
    int fanout_socket() const { return fanout_.socket(); }

private:
    // A datagram takes one to three microseconds. Fewer are sent sooner than a thread that gave the GIL away has it back.
    static constexpr u64 kLongPush = 16, kLongPushBytes = 32 * 1024;

    Outgoing outgoing(u64 index) const;
    void push();
    void catch_up();

    Fanout fanout_;
    u32 fanout_seen_ = 0;
    u64 pushed_ = 0;
    u64 pushed_pos_ = 0;
};

}  // namespace ringcast
