// Datagrams sent together: each arrives as it was, in order, in few calls.
#include "path/bundle.hpp"

#include "bench/allocations.hpp"
#include "tests/rig.hpp"

using namespace ringcast;
using namespace ringcast::tests;

namespace {

struct Ear {
    Ear() : fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        at.length = sizeof(sockaddr_in);
        auto* v4 = reinterpret_cast<sockaddr_in*>(&at.address);
        v4->sin_family = AF_INET;
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        CHECK(bind(fd.get(), at.at(), at.length) == 0);
        CHECK(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at.address), &at.length) == 0);
    }
    std::vector<std::string> heard() {
        std::vector<std::string> out;
        char buffer[65'536];
        for (ssize_t n; (n = recv(fd.get(), buffer, sizeof buffer, 0)) >= 0;) out.emplace_back(buffer, static_cast<std::size_t>(n));
        return out;
    }
    Descriptor fd;
    Endpoint at;
};

struct Author : Bundle::Author {
    void sent(u64 datagrams, u64 sent_bytes, bool by_group) override {
        (by_group ? group : alone) += datagrams;
        bytes += sent_bytes;
    }
    void refused(u64 datagrams, bool, int) override { not_sent += datagrams; }
    u64 group = 0, alone = 0, not_sent = 0, bytes = 0;
};

wire::Bytes bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST(bundle, a_blocks_parity_for_two_goes_in_one_call) {
    Ear a, b, speaker;
    Bundle bundle(speaker.fd.get());
    Author author;
    std::vector<std::string> rows;
    for (int row = 0; row < 3; ++row) {
        rows.push_back(std::string(200, static_cast<char>('a' + row)));
        bundle.add(bytes(rows.back()));
        bundle.to(a.at, &author);
        bundle.to(b.at, &author, true);
    }
    CHECK(a.heard().empty());
    bundle.flush();
    CHECK_EQ(bundle.calls(), 1u);
    CHECK(a.heard() == rows);
    CHECK(b.heard() == rows);
    CHECK_EQ(author.alone, 3u);
    CHECK_EQ(author.group, 3u);
    CHECK_EQ(author.bytes, 1200u);
}

TEST(bundle, order_is_kept_whatever_the_lengths) {
    Ear ear, other, speaker;
    Bundle bundle(speaker.fd.get());
    std::mt19937_64 random(5);
    std::vector<std::string> said;
    for (int i = 0; i < 50; ++i) {
        said.push_back(std::string(1 + random() % 3, static_cast<char>('a' + i % 26)));
        bundle.add(bytes(said.back()));
        bundle.to(ear.at);
        if (i % 5 == 0) bundle.to(other.at);
    }
    bundle.flush();
    CHECK(ear.heard() == said);
    CHECK_EQ(other.heard().size(), 10u);
}

TEST(bundle, more_than_there_is_room_for_is_sent_on_the_way) {
    Ear ear, speaker;
    const int large = 1 << 20;
    setsockopt(ear.fd.get(), SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
    Bundle bundle(speaker.fd.get());
    std::vector<Ear> ears(70);
    const std::string one(100, 'x');
    bundle.add(bytes(one));
    for (const Ear& each : ears) bundle.to(each.at);
    bundle.flush();
    for (Ear& each : ears) CHECK(each.heard() == std::vector<std::string>{one});
    std::vector<std::string> said;
    for (int i = 0; i < 9; ++i) {
        said.push_back(std::string(20'000, static_cast<char>('0' + i)));
        bundle.add(bytes(said.back()));
        bundle.to(ear.at);
        if (i % 3 == 2) {  // what a receive buffer of the default size holds
            bundle.flush();
            CHECK(ear.heard() == said);
            said.clear();
        }
    }
}

TEST(bundle, what_cannot_go_is_told_and_holds_up_nothing) {
    Ear ear, speaker;
    Bundle bundle(speaker.fd.get());
    Author author;
    Endpoint nowhere, refused = ear.at;
    // There is no port 0 to send to.
    reinterpret_cast<sockaddr_in*>(&refused.address)->sin_port = 0;
    bundle.add(bytes("hello"));
    bundle.to(nowhere, &author);
    bundle.to(refused, &author);
    bundle.to(ear.at, &author);
    bundle.flush();
    CHECK_EQ(author.not_sent, 1u);
    CHECK_EQ(author.alone, 1u);
    CHECK(ear.heard() == std::vector<std::string>{"hello"});
    CHECK(bundle.empty());
}

TEST(bundle, nothing_is_allocated) {
    Ear ear, speaker;
    Bundle bundle(speaker.fd.get());
    const std::string one(300, 'x');
    const u64 before = bench::allocations();
    for (int i = 0; i < 3; ++i) {
        bundle.add(bytes(one));
        bundle.to(ear.at);
        bundle.to(speaker.at);
    }
    bundle.flush();
    CHECK_EQ(bench::allocations() - before, 0u);
    CHECK_EQ(ear.heard().size(), 3u);
}
