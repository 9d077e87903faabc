#include "adapt/expecting.hpp"

#include <algorithm>

namespace ringcast::adapt {
namespace {

constexpr int kBlock = 4, kRepairs = 3;
constexpr double kFlushUs = 5'000, kHeartbeatUs = 5'000, kSendUs = 5;
constexpr int kMostRepairs = 3;

// Mean wait of those behind a message that is held up for so long: they come in order.
double behind(double wait_us, double period_us) noexcept { return wait_us > period_us ? wait_us * (1 + wait_us / period_us / 2) : wait_us; }

}  // namespace

double missing(double loss, double burst, int messages, int repairs) noexcept {
    if (loss <= 0) return 0;
    if (loss >= 1) return 1;
    repairs = std::min(repairs, kMostRepairs);
    const double leave = 1 / std::max(burst, 1.0), enter = std::min(loss / (1 - loss) * leave, 1.0);
    struct State {
        double share = 0, lost = 0;  // `lost`: messages lost so far, times the share
    };
    // By whether the line is bad, and how many of the block were lost; more than can be repaired are all alike.
    std::array<std::array<State, kMostRepairs + 2>, 2> now{}, next{};
    now[1][0].share = loss;
    now[0][0].share = 1 - loss;
    for (int packet = 0; packet < messages + repairs; ++packet) {
        next = {};
        for (int lost = 0; lost <= repairs + 1; ++lost) {
            const State good = now[0][lost], bad = now[1][lost];
            const int more = std::min(lost + 1, repairs + 1);
            const double counted = bad.lost + (packet < messages ? bad.share : 0);
            next[1][more].share += bad.share * (1 - leave);
            next[1][more].lost += counted * (1 - leave);
            next[0][more].share += bad.share * leave;
            next[0][more].lost += counted * leave;
            next[1][lost].share += good.share * enter;
            next[1][lost].lost += good.lost * enter;
            next[0][lost].share += good.share * (1 - enter);
            next[0][lost].lost += good.lost * (1 - enter);
        }
        now = next;
    }
    return (now[0][repairs + 1].lost + now[1][repairs + 1].lost) / messages;
}

std::array<double, kExpected> expected(const Around& around) noexcept {
    const double loss = around.loss, burst = around.burst, period = around.period_us;
    const double way = 4.0 / 3 * around.delay_us + around.wire_us + kSendUs, there_and_back = 8.0 / 3 * around.delay_us;
    const auto cost = [way](double wait_us, double share) { return (way + wait_us) / way * (1 + 100 * share); };

    // A block goes out when it is full, or after a while with what it has.
    const int messages = period > 0 ? static_cast<int>(std::min<double>(kBlock, kFlushUs / period + 1)) : kBlock;
    const double half = (messages - 1) / 2.0 * period;
    const double block = messages == kBlock ? half : std::max(kFlushUs - half, 0.0);
    const double repaired = block + 2 * around.repair_wire_us + kSendUs;
    const double lost43 = missing(loss, burst, messages, kRepairs), lost42 = missing(loss, burst, kBlock, 2);
    const double lost41 = missing(loss, burst, kBlock, 1), lost82 = missing(loss, burst, 2 * kBlock, 2);

    // A later message, or a heartbeat, shows the loss; then it is asked for.
    const double again = std::min(burst * period, kHeartbeatUs) + there_and_back;
    const double by_next = burst * period + there_and_back;
    const double patience = std::clamp(2 * std::min(kBlock * period, kFlushUs), 10'000.0, 500'000.0);
    return {
        cost((loss - lost43) * repaired, lost43),
        cost((loss - lost42) * (2.5 * period + 1.5 * around.repair_wire_us), lost42),
        cost((loss - lost41) * (1.5 * period + around.repair_wire_us), lost41),
        cost((loss - lost43) * repaired + lost43 * behind(again + kFlushUs, period), 0),
        cost((loss - lost43) * behind(repaired, period) + lost43 * behind(patience, period), lost43),
        cost(loss / burst * behind(again, period), 0),
        cost((around.receivers - 1) / 2 * around.wire_us + loss * behind(by_next, period), 0),
        cost(0, loss),
        lost43,
        lost42,
        lost41,
        lost82,
    };
}

}  // namespace ringcast::adapt
