// Chunks of variables on their way from a table into a ring, without a Python object for any of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bindings/module.hpp"
#include "ring/layout.hpp"

namespace ringcast::bindings {

struct PacketWanted {
    bool full = false;
    bool heads_up = false;  // not the packet, but that it follows at once
    i64 period_ns = 0;
    u32 frame_ms = 0;
    std::size_t limit = 0;
};

class ChunkSource {
public:
    struct Packet {
        std::vector<std::string> chunks;
        std::optional<i64> event_ns;
    };

    virtual ~ChunkSource() = default;
    // With the GIL. Without chunks when nothing changed and not everything is wanted.
    virtual Packet packet(const PacketWanted& wanted) = 0;
};

// Raises TypeError.
ChunkSource& source_of_chunks(nb::handle table);

}  // namespace ringcast::bindings
