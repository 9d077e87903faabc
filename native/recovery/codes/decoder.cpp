#include "recovery/codes/decoder.hpp"

#include <algorithm>

namespace ringcast::recovery {

Decoder::Decoder(const Window& window, u64 key) : window_(window), key_(key) {
    for (Kept& kept : kept_) kept.symbol.resize(window.spec().cell_bytes + wire::kSymbolHeadBytes);
}

bool Decoder::take(const wire::Repair& repair) {
    ++counters_.repairs;
    const bool listed_well = std::ranges::all_of(repair.listed(), [&](PacketId id) {
        // As far ahead as the window reaches, no farther: a repair moves nothing.
        return id.seq < window_.spec().first || (window_.carries(id.seq) && !window_.beyond(window_.index_of(id.seq)) && id.piece < window_.spec().most_pieces);
    });
    if (!listed_well || repair.symbol.size() > kept_[0].symbol.size()) {
        ++counters_.absurd;
        return false;
    }
    Kept& kept = kept_[turn_];
    turn_ = (turn_ + 1) % kKept;
    if (kept.state != State::unused) ++counters_.replaced;
    kept.row = repair.row;
    kept.count = repair.count;
    std::copy_n(repair.ids.begin(), repair.count, kept.ids.begin());
    kept.symbol_bytes = repair.symbol.size();
    std::copy(repair.symbol.begin(), repair.symbol.end(), kept.symbol.begin());
    kept.state = State::look_again;
    pending_ = true;
    return true;
}

void Decoder::on_packet(PacketId id) {
    for (Kept& kept : kept_)
        if (kept.state == State::kept && std::binary_search(kept.ids.begin(), kept.ids.begin() + kept.count, id)) {
            kept.state = State::look_again;
            pending_ = true;
        }
}

bool Decoder::next(Bytes& datagram) {
    while (pending_) {
        pending_ = false;
        for (Kept& kept : kept_) {
            if (kept.state == State::solved && emerges(kept, datagram)) {
                pending_ = true;
                return true;
            }
            if (kept.state == State::look_again) {
                look(kept);
                pending_ = pending_ || kept.state == State::solved;
            }
        }
    }
    return false;
}

Decoder::Unknowns Decoder::unknowns_of(const Kept& kept) const {
    Unknowns unknowns;
    for (u32 i = 0; i < kept.count; ++i) {
        if (window_.lacks(kept.ids[i]))
            unknowns.places[unknowns.count++] = i;
        else if (const Bytes known = window_.bytes(kept.ids[i]); known.empty() || known.size() + wire::kSymbolHeadBytes > kept.symbol_bytes)
            unknowns.hopeless = true;
    }
    return unknowns;
}

void Decoder::look(Kept& kept) {
    const Unknowns unknowns = unknowns_of(kept);
    if (unknowns.count == 0 || unknowns.hopeless) {
        ++counters_.useless;
        kept.state = State::unused;
        return;
    }
    kept.state = State::kept;
    std::array<Kept*, kKept> rows;
    if (gather_block(kept, rows) >= unknowns.count) solve({rows.data(), unknowns.count}, {unknowns.places.data(), unknowns.count});
}

std::size_t Decoder::gather_block(Kept& kept, std::span<Kept*> rows) {
    std::size_t n = 0;
    rows[n++] = &kept;
    const auto listed = [](const Kept& one) { return std::span(one.ids).first(one.count); };
    for (Kept& other : kept_) {
        if (&other == &kept || (other.state != State::kept && other.state != State::look_again)) continue;
        if (other.symbol_bytes != kept.symbol_bytes || !std::ranges::equal(listed(other), listed(kept))) continue;
        const bool again = std::ranges::any_of(rows.first(n), [&](const Kept* row) { return row->row == other.row; });
        if (!again) rows[n++] = &other;
    }
    return n;
}

// Gauss and Jordan, in the very symbols that were kept: afterwards each holds one of the missing packets.
void Decoder::solve(std::span<Kept*> rows, std::span<const u32> places) {
    std::array<std::array<byte, kKept>, kKept> matrix;
    const std::size_t m = rows.size(), bytes = rows[0]->symbol_bytes;
    for (std::size_t j = 0; j < m; ++j) {
        Kept& row = *rows[j];
        for (u32 i = 0, unknown = 0; i < row.count; ++i) {
            if (unknown < m && places[unknown] == i)
                matrix[j][unknown++] = coefficient(row.row, i);
            else
                mix_symbol(row.symbol.data(), window_.bytes(row.ids[i]), coefficient(row.row, i));
        }
    }
    for (std::size_t pivot = 0; pivot < m; ++pivot) {
        // Every square part of the code can be inverted, so each pivot is found.
        std::size_t found = pivot;
        while (matrix[found][pivot] == 0) ++found;
        std::swap(matrix[found], matrix[pivot]);
        std::swap(rows[found], rows[pivot]);
        const byte factor = inverse(matrix[pivot][pivot]);
        for (std::size_t k = 0; k < m; ++k) matrix[pivot][k] = multiply(matrix[pivot][k], factor);
        scale(rows[pivot]->symbol.data(), bytes, factor);
        for (std::size_t j = 0; j < m; ++j) {
            const byte share = matrix[j][pivot];
            if (j == pivot || share == 0) continue;
            for (std::size_t k = 0; k < m; ++k) matrix[j][k] ^= multiply(matrix[pivot][k], share);
            mix(rows[j]->symbol.data(), rows[pivot]->symbol.data(), bytes, share);
        }
    }
    for (std::size_t j = 0; j < m; ++j) {
        rows[j]->answer = rows[j]->ids[places[j]];
        rows[j]->state = State::solved;
    }
    pending_ = true;
}

bool Decoder::emerges(Kept& kept, Bytes& datagram) {
    kept.state = State::unused;
    std::uint16_t size;
    std::memcpy(&size, kept.symbol.data(), sizeof size);
    const Bytes body{kept.symbol.data() + wire::kSymbolHeadBytes, kept.symbol_bytes - wire::kSymbolHeadBytes};
    wire::Header header;
    Bytes piece;
    const bool genuine = size <= body.size() && wire::parse_untrusted(body.first(size), header, piece) == wire::Parse::ok && header.key == key_ &&
                         wire::id_of(header) == kept.answer && std::ranges::all_of(body.subspan(size), [](std::byte b) { return b == std::byte{}; });
    if (!genuine) {
        ++counters_.forged;
        return false;
    }
    ++counters_.decoded;
    datagram = body.first(size);
    return true;
}

}  // namespace ringcast::recovery
