// Datagrams that a thread has to send, kept until they can go together: in one system call, and those of one length to
// one place as one packet that the kernel cuts (a block's parity, a run of repairs), which wakes its receiver once.
//
// Bounded and allocated once. What the kernel refuses is told to whoever wanted it sent, and is not tried again.
#pragma once

#include <memory>
#include <vector>

#include "path/endpoint.hpp"
#include "seal/sealer.hpp"
#include "wire/control.hpp"

namespace ringcast {

class Bundle {
public:
    // Told what became of datagrams, within `flush`.
    class Author {
    public:
        virtual ~Author() = default;
        virtual void sent(u64 datagrams, u64 bytes, bool by_group) = 0;
        virtual void refused(u64 datagrams, bool by_group, int error) = 0;
    };

    explicit Bundle(int socket);

    // Both may flush. The author, if there is one, lives until the next `flush`.
    void add(wire::Bytes datagram, seal::Sealer* sealer = nullptr);
    // The one added last goes there; nowhere is no place.
    void to(const Endpoint& place, Author* author = nullptr, bool by_group = false);
    void flush();

    bool empty() const { return count_ == 0; }
    // System calls so far.
    u64 calls() const { return calls_; }

private:
    static constexpr std::size_t kMost = 64;
    static constexpr std::size_t kBytes = 128 * 1024;
    static constexpr std::size_t kMostDatagram = 65'507;

    struct Queued {
        Endpoint to;
        std::size_t at, length;
        Author* author;
        bool by_group;
        u32 flags;  // with the class of the message that it is of; 0 is as the socket
    };
    struct Run;

    std::size_t collect(struct mmsghdr* vector, struct iovec* parts, Run* runs);

    int socket_;
    std::unique_ptr<std::byte[]> bytes_;
    std::unique_ptr<Queued[]> queued_;
    std::size_t count_ = 0;
    std::size_t filled_ = 0;
    std::size_t last_ = 0;  // where the one added last begins
    u32 last_flags_ = 0;
    bool cuts_ = true;      // whether the kernel does
    u64 calls_ = 0;
};

}  // namespace ringcast
