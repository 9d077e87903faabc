#include "path/repair/ring_packets.hpp"

#include <algorithm>

namespace ringcast {

wire::Bytes RingPackets::read(wire::PacketId id) {
    if ((!loaded_ || record_.seq != id.seq) && !find(id.seq)) return {};
    return id.piece < pieces() ? piece(id.piece) : wire::Bytes{};
}

bool RingPackets::find(u64 seq) {
    const u64 index = ring_->find(seq);
    Record record;
    if (index >= ring_->tail() || ring_->record(index, record) != Read::ok || record.seq != seq) return false;
    return load(record);
}

bool RingPackets::load(const Record& record) {
    loaded_ = false;
    if (record.length > wire::kMostBytes) return false;
    // Room grows to the longest message and then stays.
    if (bytes_.size() < record.length) bytes_.resize(record.length);
    if (!ring_->copy(record, bytes_.data())) return false;
    record_ = record;
    return loaded_ = true;
}

wire::Bytes RingPackets::piece(u32 number) {
    const wire::Outgoing message{record_.seq, record_.event_ns, record_.sent_ns, record_.flags, static_cast<u32>(record_.length)};
    const wire::Header header = wire::header_of(key_, message, chunk_, number * chunk_);
    const u32 length = std::min<u32>(chunk_, header.length - header.offset);
    datagram_.resize(wire::kHeaderBytes + chunk_);
    std::memcpy(datagram_.data(), &header, wire::kHeaderBytes);
    // Before the first message with bytes there is no room that could be pointed to.
    if (length > 0) std::memcpy(datagram_.data() + wire::kHeaderBytes, bytes_.data() + header.offset, length);
    return {datagram_.data(), wire::kHeaderBytes + length};
}

u64 RingPackets::first_available() {
    const u64 index = ring_->oldest(), tail = ring_->tail();
    Record record;
    if (index < tail && ring_->outline(index, record)) return (record.seq + step_ - 1) / step_ * step_;
    if (tail > 0 && ring_->outline(tail - 1, record)) return (record.seq + step_) / step_ * step_;
    return 0;
}

}  // namespace ringcast
