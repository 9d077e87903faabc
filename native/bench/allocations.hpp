// How often anything in this program allocated. Linking allocations.cpp replaces the global operator new.
#pragma once

#include <cstdint>

namespace ringcast::bench {

std::uint64_t allocations();

}  // namespace ringcast::bench
