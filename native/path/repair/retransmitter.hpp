// The thread that answers receivers: one per local address, for all groups that this node sends to from there.
//
// It owns the socket to which naks, acknowledgements and credits come, and sends heartbeats and repairs from it, so
// that publishers need not know that anything was lost. It sleeps until something comes, a group's time has come, or
// the ring of an idle group is written (path/bell_watch.hpp): without that heartbeats would never start again. It looks at a
// group when its time has come or something happened to it; the others cost it the comparison of a number.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "path/bell_watch.hpp"
#include "path/bundle.hpp"
#include "path/intake.hpp"
#include "path/repair/group.hpp"
#include "system/inheriting_mutex.hpp"
#include "system/thread.hpp"

namespace ringcast {

struct RetransmitterCounters {
    std::atomic<u64> datagrams{0};
    std::atomic<u64> malformed{0};
    std::atomic<u64> stranger{0};
    std::atomic<u64> looks{0};  // at groups
};

class Retransmitter {
public:
    explicit Retransmitter(Descriptor socket);
    ~Retransmitter();

    // ---- any thread
    std::shared_ptr<Group> open(int ring_fd, int bell_fd, const Geometry& geometry, u64 incarnation, const GroupSpec& spec);
    // When it returns, nothing is sent to the group any more.
    void close_group(u64 key);
    void set_members(u64 key, std::vector<GroupMember> members);
    void pump_from(u64 key, u64 seq);
    void retune(u64 key, const recovery::Tuning& tuning, std::shared_ptr<recovery::Filter> filter);
    void set_multicast(u64 key, const Endpoint& multicast);
    void probe(u64 key);
    int family() const { return family_of(socket_.get()); }
    const RetransmitterCounters& counters() const { return counters_; }
    int thread_id() const { return thread_.id(); }
    u64 failures() const { return thread_.failures(); }
    void close();

private:
    // Naks are short; nobody sends this thread anything longer.
    static constexpr std::size_t kDatagramBytes = 2048;

    struct OpenGroup {
        std::shared_ptr<Group> group;
        RingPtr ring;
        std::shared_ptr<Mapping> bell;
        bool watched = false;  // its ring is in the watch, or the watch has news of it
        i64 due_ns = 0;        // when it is to be looked at, if nothing happens before
    };

    template <typename Do>
    void ask(u64 key, Do&& of_group);
    void take_requests();
    void run();
    i64 work();
    void take_news();
    void close_open_group(u64 key);
    OpenGroup* find(u64 key);
    void receive();

    Descriptor socket_;
    InheritingMutex mutex_;
    std::unordered_set<u64> open_;  // keys

    // ---- the thread's own
    std::vector<OpenGroup> groups_;
    std::unordered_map<u64, std::size_t> place_of_;  // in it
    Bundle outgoing_;
    Intake intake_;
    std::atomic<bool> news_{false};
    RetransmitterCounters counters_;
    BellWatch watch_;
    Thread thread_;
};

}  // namespace ringcast
