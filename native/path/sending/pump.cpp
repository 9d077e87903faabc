#include "path/sending/pump.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "ring/counters.hpp"

namespace ringcast {
namespace {

constexpr std::size_t kBatchBytes = 256 * 1024;
constexpr std::size_t kMostRunMessage = 1024;
// So many are sent at once.
constexpr std::size_t kSealedRecords = 4;

// A reliable publisher waits for what a batch holds: with half of the ring it fills the other half while that is sent.
std::size_t most_of(const RingPtr& ring, const PumpSpec& spec) {
    const std::size_t most = spec.stream ? 4096 : Link::kBatch;
    return spec.reliable ? std::clamp<std::size_t>(ring->geometry().depth / 2, 1, most) : most;
}

}  // namespace

Pump::Pump(RingPtr ring, Mapping bell, Descriptor socket, const PumpSpec& spec)
    : spec_(spec),
      socket_(std::move(socket)),
      reader_(false, nullptr),
      most_(most_of(ring, spec)),
      link_(Descriptor(spec.stream ? -1 : dup(socket_.get())), 0, spec.key, spec.every, spec.chunk, UINT64_MAX,
            spec.seal && !spec.stream ? spec.seal->sealer(spec.sender) : nullptr),
      frames_(spec.key, spec.every, spec.heads),
      read_to_(spec.first_seq),
      next_seq_(spec.first_seq),
      buffer_(kBatchBytes),
      mark_(socket_.get()),
      thread_([this] {
          if (spec_.stream) shutdown(socket_.get(), SHUT_RDWR);
          reader_.close();
      }) {
    if (spec.seal && spec.stream) {
        records_ = std::make_unique<seal::RecordSealer>(spec.seal->schedule());
        sealed_.resize(kSealedRecords * (seal::kMostRecord + seal::kRecordBytes));
    }
    auto member = std::make_shared<Reader::Member>();
    member->cursor = std::make_unique<Cursor>(std::move(ring), std::move(bell),
                                              CursorSpec{.start = static_cast<i64>(spec.first_seq), .reliable = spec.reliable, .owner = static_cast<u32>(getpid()) | kForOthers, .keeps = true});
    cursor_ = member->cursor.get();
    reader_.attach(std::move(member));
    thread_.start("ringcast-pump", [this] { run(); });
}

Pump::~Pump() { close(); }

void Pump::stop_before(u64 seq) {
    stop_before_.store(seq);
    reader_.poke();
}

void Pump::close() { thread_.stop(); }

void Pump::run() {
    if (!reader_.enter()) return;
    bool broken = false;
    while (!thread_.stopping() && !finished() && !broken) {
        try {
            const bool some = fill();
            broken = (some && !flush()) || corrupt_;
            if (some && !broken) cursor_->publish_position();
            if (!broken) next_seq_.store(read_to_, std::memory_order_release);
            if (!some) pressed_.store(false, std::memory_order_relaxed);
            if (!some && !broken) reader_.wait(kForever);
        } catch (const std::bad_alloc&) {
            broken = true;  // no room for a copy of the message
        }
    }
    reader_.leave();
    // Whoever reads the stream may live on and would wait for ever: he is told that nothing more comes, and before the
    // state is seen, so that whoever sees it finds the stream ended.
    if (broken && spec_.stream) shutdown(socket_.get(), SHUT_RDWR);
    // The slot of a reliable reader goes with it, or the publisher would wait for a thread that is no more. A stream that
    // broke is opened again: its place is kept until whoever sees to that closes this.
    if (!broken) reader_.close();
    state_.store(broken ? State::broken : State::done);
}

bool Pump::fill() {
    filled_ = 0;
    batch_.clear();
    marked_ = mark_.raised();
    Record record;
    Reader::Member* from;
    while (!finished() && batch_.size() < most_) {
        if (fill_run()) continue;
        Peek peek = reader_.poll(record, from);
        corrupt_ = peek == Peek::corrupt;
        if (peek != Peek::ready) break;
        if (!link_.due(record.seq)) {
            add(lost_, reader_.taken(*from, record, record.sent_ns, false));
            read_to_ = record.seq + 1;
            continue;
        }
        if (record.seq >= stop_before_.load()) {
            read_to_ = record.seq;
            break;
        }
        if (pressed() && (record.flags & kDiscardable) != 0) {
            add(counters_.discarded, 1);
            add(lost_, reader_.taken(*from, record, record.sent_ns, false));
            read_to_ = record.seq + 1;
            continue;
        }
        Outgoing message{record.seq, record.event_ns, record.sent_ns, record.flags, static_cast<u32>(record.length), nullptr};
        const std::size_t head = spec_.stream ? frames_.head_bytes(message) : 0;
        const std::size_t need = head + record.length;
        if (filled_ + need > buffer_.size()) {
            if (filled_ > 0) break;
            buffer_.resize(need);
        }
        std::byte* to = buffer_.data() + filled_;
        if (!from->cursor->ring()->copy(record, to + head)) continue;  // overtaken; the next poll says by how many
        message.bytes = to + head;
        if (spec_.stream) frames_.put(message, to);
        marked_ |= class_of(record.flags) != 0;
        filled_ += spec_.stream ? need : (need + 7) & ~std::size_t{7};
        batch_.push_back(message);
        add(lost_, reader_.taken(*from, record, record.sent_ns, false));
        read_to_ = record.seq + 1;
    }
    return !batch_.empty();
}

// Small messages with one look at the ring for all of them; none where the next one needs a closer look.
bool Pump::fill_run() {
    if (!spec_.stream || spec_.every > 1 || pressed()) return false;
    std::array<Record, kMostClaimed> records;
    Reader::Member* from;
    std::size_t found = reader_.poll_run(kMostRunMessage, {records.data(), std::min<std::size_t>(records.size(), most_ - batch_.size())}, from);
    const u64 stop = stop_before_.load();
    while (found > 0 && records[found - 1].seq >= stop) --found;
    if (found < 2) return false;
    const RingView& ring = *from->cursor->ring();
    const wire::FrameWriter before = frames_;
    const std::size_t first = batch_.size(), begin = filled_;
    bool marked = false;
    for (std::size_t i = 0; i < found; ++i) {
        const Record& record = records[i];
        batch_.push_back({record.seq, record.event_ns, record.sent_ns, record.flags, static_cast<u32>(record.length), nullptr});
        marked |= class_of(record.flags) != 0;
    }
    std::size_t taken = 0;
    while (taken < found) {
        const std::size_t count = copy_together(ring, {records.data() + taken, found - taken}, {batch_.data() + first + taken, found - taken});
        if (count == 0) break;
        taken += count;
    }
    if (taken == 0 || !ring.intact_after(records[0])) {
        frames_ = before;
        filled_ = begin;
        batch_.resize(first);
        return false;
    }
    batch_.resize(first + taken);
    marked_ |= marked;
    // Nobody asks this reader how much it took, or when.
    if (const u64 lost = from->cursor->advance_run({records.data(), taken}); lost != 0) add(lost_, lost);
    read_to_ = records[taken - 1].seq + 1;
    return true;
}

// As many of these as have one header, and whether they were overwritten is not known yet; 0 when there is no room.
std::size_t Pump::copy_together(const RingView& ring, std::span<const Record> records, std::span<Outgoing> messages) {
    std::size_t count = frames_.together(messages);
    const std::size_t length = messages[0].length, room = buffer_.size() - filled_;
    const std::size_t head = count > 1 ? wire::kShortBytes : frames_.head_bytes(messages[0]);
    if (room < head + length) return 0;
    if (length > 0) count = std::min(count, (room - head) / length);
    std::byte* to = buffer_.data() + filled_;
    if (count > 1)
        frames_.put_run(messages[0], count, to);
    else
        frames_.put(messages[0], to);
    to += head;
    for (std::size_t i = 0; i < count;) {
        // What lies one behind the other in the ring is copied at once.
        std::size_t end = i + 1;
        while (end < count && records[end].pos == records[end - 1].pos + length) ++end;
        copy_out(to, ring.bytes(records[i]), (end - i) * length);
        for (; i < end; ++i, to += length) messages[i].bytes = to;
    }
    filled_ = static_cast<std::size_t>(to - buffer_.data());
    return count;
}

bool Pump::flush() {
    if (spec_.stream) return send_stream();
    for (const Outgoing& message : batch_) {
        add(counters_.messages, 1);
        add(counters_.bytes, message.length);
        // Burst by burst: a long message sent at once would fill the receiver's buffer and lose its own end.
        u32 offset = 0;
        do {
            const u32 next = link_.push_burst(message, offset, counters_);
            pace(next - offset);
            offset = next;
        } while (offset < message.length && !thread_.stopping());
    }
    return true;
}

// The kernel takes what is sent to a peer that closed, once, and drops it.
bool Pump::gone() const {
    pollfd fd{socket_.get(), POLLRDHUP, 0};
    return ::poll(&fd, 1, 0) > 0;
}

bool Pump::send_stream() {
    if (gone() || !(marked_ ? send_marked() : send_span({buffer_.data(), filled_}))) return false;
    add(counters_.messages, batch_.size());
    add(counters_.bytes, filled_);
    return true;
}

bool Pump::send_marked() {
    std::size_t at = 0;
    for (std::size_t i = 0; i < batch_.size();) {
        mark_.become(batch_[i].flags);
        const u32 own = class_of(batch_[i].flags);
        std::size_t end = at;  // headers differ in length
        for (; i < batch_.size() && class_of(batch_[i].flags) == own; ++i) end = static_cast<std::size_t>(batch_[i].bytes - buffer_.data()) + batch_[i].length;
        if (!send_span({buffer_.data() + at, end - at})) return false;
        at = end;
    }
    return true;
}

bool Pump::send_sealed(std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        std::size_t length = 0;
        for (std::size_t i = 0; i < kSealedRecords && at < bytes.size(); ++i) {
            const std::size_t part = std::min(bytes.size() - at, seal::kMostRecord);
            const std::size_t record = records_->seal(bytes.subspan(at, part), sealed_.data() + length);
            if (record == 0) return false;
            length += record;
            at += part;
        }
        if (!send_all({sealed_.data(), length})) return false;
    }
    return true;
}

bool Pump::send_all(std::span<const std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = ::send(socket_.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            done += static_cast<std::size_t>(n);
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n == 0 || errno != EAGAIN) return false;
        pressed_.store(!spec_.reliable, std::memory_order_relaxed);
        pollfd fd{socket_.get(), POLLOUT, 0};
        ::poll(&fd, 1, 250);
        if (thread_.stopping()) return false;
    }
    return true;
}

void Pump::pace(std::size_t bytes) {
    if (spec_.most_bytes_per_s == 0) return;
    const i64 now = steady_ns();
    paced_until_ns_ = std::max(paced_until_ns_, now) + static_cast<i64>(bytes) * 1'000'000'000 / static_cast<i64>(spec_.most_bytes_per_s);
    const i64 left = paced_until_ns_ - now;
    if (left <= 100'000) return;
    const timespec t{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
    nanosleep(&t, nullptr);
}

}  // namespace ringcast
