// recovery_bench PACKETS: one line of JSON per stack and size: nanoseconds and allocations per packet received.
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "bench/allocations.hpp"
#include "lab/recovery_cost.hpp"

int main(int argc, char** argv) {
    using namespace ringcast;
    const u64 packets = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200'000;
    for (const char* stack : {"", "ordering", "ordering nak", "lateral", "parity", "ordering ack", "ordering lateral nak"})
        for (const u32 payload : {12u, 1400u}) {
            std::istringstream words(stack);
            const std::vector<std::string> stages{std::istream_iterator<std::string>(words), {}};
            lab::RecoveryCost cost(stages, payload, 0.01);
            cost.run(packets / 10);
            const u64 before = bench::allocations();
            const double ns = cost.run(packets);
            std::printf("{\"stages\": \"%s\", \"payload_bytes\": %u, \"ns\": %.1f, \"allocations\": %llu}\n", stack, payload, ns,
                        static_cast<unsigned long long>(bench::allocations() - before));
        }
}
