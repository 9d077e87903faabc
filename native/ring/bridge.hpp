// From rings to an eventfd, for whoever waits with select, poll or an event loop.
//
// Each reader that wants a file descriptor has a port. Of a few rings the kernel itself makes its eventfd readable when
// their doorbells ring (`direct`). Of many, and where the kernel cannot, a session has one bridge: a native thread asleep on
// one mailbox, which fills the port's private mailbox and writes to its eventfd.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "ring/mailbox.hpp"
#include "ring/memory.hpp"
#include "system/futex_signal.hpp"
#include "system/inheriting_mutex.hpp"
#include "system/thread.hpp"

namespace ringcast {

struct Port {
    Port();
    void signal(u32 bit);
    void raise();  // make the eventfd readable
    void clear();

    MailboxPage box{};
    Descriptor eventfd;
    std::atomic<bool> raised{false};
    std::unique_ptr<futex::Signal> direct{};
};

class Bridge {
public:
    Bridge();
    ~Bridge();
    int mailbox_fd() const { return fd_.get(); }
    void add(u64 incarnation, const std::shared_ptr<Port>& port);
    void remove(u64 incarnation, const Port* port);
    void close();

private:
    void run();

    Descriptor fd_;
    Mapping map_;
    InheritingMutex mutex_;
    std::unordered_map<u32, std::vector<std::shared_ptr<Port>>> ports_;
    Thread thread_;
};

}  // namespace ringcast
