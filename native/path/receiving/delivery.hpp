// The thread that takes datagrams from other nodes and puts them into mirror rings. Native, without the GIL.
//
// It owns one socket and sleeps in the very call that receives: another call to wait first would cost as much as the
// rest of the work. Only while something is due soon, or once there are sockets of multicast groups
// beside the first, does it wait before it receives (path/poller.hpp). Nothing from the network is believed; what is not a
// datagram of a channel that was opened is counted by reason and dropped. It never waits for a reader.
//
// One that is attended, in the process of the only reader, leaves receiving to the reader's own thread while that waits: a
// message then wakes one thread on this node and not two. Who has the turn is one word, `turn_`; what the turn guards, all
// that is the thread's own, is handed over with it. A reader that has not come for a millisecond or two has something else
// to do, and the thread takes the turn, so that requests for repair and credits go on; it gives it back with the next message
// that the reader waits for. While the reader comes and goes the thread looks up once in a millisecond; while the reader
// sleeps, or the thread has the turn, nothing is looked at.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "path/bell_watch.hpp"
#include "path/intake.hpp"
#include "path/poller.hpp"
#include "path/receiving/recovered.hpp"
#include "system/inflow.hpp"
#include "system/inheriting_mutex.hpp"
#include "system/thread.hpp"

namespace ringcast {

struct DeliveryCounters {
    std::atomic<u64> datagrams{0};
    std::atomic<u64> truncated{0};
    std::atomic<u64> foreign{0};
    std::atomic<u64> newer{0};
    std::atomic<u64> malformed{0};
    std::atomic<u64> stranger{0};  // no channel has that key
};

class Delivery final : public Inflow {
public:
    explicit Delivery(Descriptor socket, bool attended = false);
    ~Delivery() override;

    // ---- any thread
    std::shared_ptr<Mirror> open(const ChannelSpec& spec);
    // Behind a recovery stack. With `before` it begins with what that mirror holds; copying that takes its time.
    std::shared_ptr<Mirror> open(const ChannelSpec& spec, RecoverySpec recovery, const RingView* before = nullptr);
    void retune(u64 key, const recovery::Tuning& tuning, std::shared_ptr<recovery::Filter> filter, bool patient);
    void regroup(u64 key, std::vector<Endpoint> peers);
    // One more socket to receive from: multicast groups'.
    void add_socket(Descriptor socket);
    int family() const { return family_of(socket_.get()); }
    void close_channel(u64 key);
    // From now on the mirror pushes to others too: a proxy's stage.
    void attach_fanout(u64 key, Descriptor socket);
    const DeliveryCounters& counters() const { return counters_; }
    int thread_id() const { return thread_.id(); }
    u64 failures() const { return thread_.failures(); }
    // How often the thread took the turn, and the reader.
    u64 taken() const { return taken_.load(std::memory_order_relaxed); }
    u64 entries() const { return entries_.load(std::memory_order_relaxed); }
    void close();

    // ---- the only reader's thread
    bool enter() override;
    bool vacant() const override { return turn_.load() == Turn::nobody; }
    futex::WaitResult receive(i64 for_ns) override;
    void leave() override;
    void wake() override { wake_receiver(socket_.get()); }

private:
    enum class Turn : u32 { thread, nobody, reader };
    static constexpr i64 kAbsentNs = 1'000'000;

    static constexpr std::size_t kDatagramBytes = 65'536;
    // What is due later than this may come a tick of the kernel's late, should nothing be received before.
    static constexpr i64 kSoonNs = 3'000'000;
    static constexpr i64 kTickNs = 1'000'000;
    static constexpr i64 kAskingNs = 2'000;  // per channel

    struct Channel {
        std::shared_ptr<Mirror> mirror;
        std::unique_ptr<Recovered> recovered;
        bool awaits = false;  // its readers, in the watch

        i64 wake_at_ns() const;
        void tick(i64 now_ns);
        void after_batch(i64 now_ns);
    };

    void take_requests();
    void take_news();
    void await_readers(Channel& channel);
    void run();
    bool work(i64 for_ns);
    bool far_off();
    bool sleep_receiving();
    void limit_receiving(i64 for_ns);
    bool wait(i64 until_ns);
    bool receive(int socket, int flags);  // false when nothing was there
    struct Moment {
        i64 now_ns;     // steady
        i64 kernel_ns;  // UTC
    };
    void handle(std::span<std::byte> datagram, const Moment& moment, bool by_group);
    void tick();
    void rouse();
    void look_up_after(i64 for_ns);
    bool take_turn();
    void give_turn();

    Descriptor socket_;
    const bool attended_;
    Descriptor look_up_;  // a timer
    std::atomic<Turn> turn_{Turn::thread};
    std::atomic<bool> wanted_{false};   // the reader has waited while the thread had the turn
    std::atomic<bool> set_{false};      // the timer
    std::atomic<u64> entries_{0};
    std::atomic<u64> taken_{0};
    u64 entries_seen_ = 0;
    InheritingMutex mutex_;
    std::unordered_set<u64> awaiting_;  // keys of channels whose readers are waited for

    // ---- the thread's own
    Bundle outgoing_;
    std::unordered_map<u64, Channel> channels_;
    std::vector<Channel*> touched_;
    std::vector<Descriptor> more_sockets_;
    Poller poller_;
    Intake intake_;
    i64 wake_at_ns_ = kForever;
    i64 asked_ns_ = 0;
    i64 limit_ns_ = 0;
    DeliveryCounters counters_;
    std::atomic<bool> news_{false};  // readers moved
    BellWatch watch_;
    Thread thread_;
};

}  // namespace ringcast
