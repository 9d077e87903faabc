// A dedicated thread that owns a cursor on a ring and sends what it reads to one other node.
//
// For streams (TCP), for the history that a late joiner asks for, for messages too long to be sent in one burst, and
// for any channel with a scheduling policy of its own: this thread is what gets it. It copies, validates and then
// sends; never straight from ring memory. A reliable one gives up its place in the ring batch by batch, when a batch
// was sent: the one that could not be sent is there for whoever goes on. When it can go on no more, because the ring is damaged or the socket fails, it
// ends its stream, so that the other node learns of it.
//
// While the other side of a stream takes less than there is, messages that their publisher called discardable are left out,
// so that those which matter are less late. Whoever asked for reliable delivery gets them all.
#pragma once

#include <string>
#include <vector>

#include "path/sending/class_mark.hpp"
#include "path/sending/link.hpp"
#include "ring/reader.hpp"
#include "seal/channel_seal.hpp"
#include "seal/records.hpp"
#include "system/thread.hpp"
#include "wire/frame.hpp"

namespace ringcast {

struct PumpSpec {
    u64 key = 0;
    u64 every = 1;
    u64 first_seq = 0;
    bool reliable = false;
    bool stream = true;
    std::uint16_t chunk = 0;
    u64 most_bytes_per_s = 0;  // datagrams only; 0 is unpaced
    std::shared_ptr<seal::ChannelSeal> seal{};  // none on a mesh without identities
    u32 sender = 0;                           // its own number among those who seal
    wire::Heads heads = wire::Heads::whole;   // what the receiver of the stream knows
};

class Pump {
public:
    enum class State { running, done, broken };

    Pump(RingPtr ring, Mapping bell, Descriptor socket, const PumpSpec& spec);
    ~Pump();

    // Somebody else sends `seq` and everything after it: finish what is before.
    void stop_before(u64 seq);
    void close();

    State state() const { return state_.load(); }
    // All before it that is due was sent.
    u64 next_seq() const { return next_seq_.load(std::memory_order_acquire); }
    int thread_id() const { return thread_.id(); }
    const LinkCounters& counters() const { return counters_; }
    bool sealed() const { return spec_.seal != nullptr; }
    u64 lost() const { return lost_.load(std::memory_order_relaxed); }
    // The receiver took less than was there, and this has not caught up since: what is discardable is left out.
    bool pressed() const { return pressed_.load(std::memory_order_relaxed); }

private:
    void run();
    bool gone() const;  // the other side closed its end of the stream
    bool fill();   // false when there was nothing
    bool fill_run();
    std::size_t copy_together(const RingView& ring, std::span<const Record> records, std::span<Outgoing> messages);
    bool flush();  // false when the other side is gone
    bool send_stream();
    bool send_marked();  // message by message, by class
    bool send_span(std::span<const std::byte> bytes) { return records_ ? send_sealed(bytes) : send_all(bytes); }
    bool send_sealed(std::span<const std::byte> bytes);
    bool send_all(std::span<const std::byte> bytes);
    void pace(std::size_t bytes);
    bool finished() const { return read_to_ >= stop_before_.load(); }

    PumpSpec spec_;
    Descriptor socket_;
    Reader reader_;
    Cursor* cursor_;  // the one that `reader_` has
    std::size_t most_;  // messages in a batch
    Link link_;
    wire::FrameWriter frames_;
    LinkCounters counters_;
    std::atomic<u64> lost_{0};
    u64 read_to_;  // the thread's own: of this much a batch was made
    std::atomic<u64> next_seq_;
    std::atomic<u64> stop_before_{UINT64_MAX};
    std::atomic<State> state_{State::running};
    std::vector<std::byte> buffer_;
    std::size_t filled_ = 0;
    std::vector<Outgoing> batch_;
    i64 paced_until_ns_ = 0;
    std::unique_ptr<seal::RecordSealer> records_;
    std::vector<std::byte> sealed_;
    StreamMark mark_;
    bool marked_ = false;   // some of the batch have a class of their own
    bool corrupt_ = false;  // the ring is
    std::atomic<bool> pressed_{false};  // written by its thread only
    Thread thread_;
};

}  // namespace ringcast
