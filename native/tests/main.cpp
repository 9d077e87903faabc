// ring_tests [SUBJECT [NAME]]: run everything, one subject, or one test of it.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/check.hpp"

namespace ringcast::tests {

struct Test {
    std::string_view subject, name;
    void (*run)();
};

static std::vector<Test>& registered() {
    static std::vector<Test> tests;
    return tests;
}

Registration::Registration(const char* subject, const char* name, void (*run)()) {
    registered().push_back({subject, name, run});
}

void fail(const char* file, int line, const std::string& why) {
    throw std::logic_error(file + (":" + std::to_string(line)) + ": " + why);
}

void fail(const char* file, int line, const char* why) { fail(file, line, std::string(why)); }

}  // namespace ringcast::tests

// Some tests open a thousand rings; a user's limit is often 1,024 descriptors, and may be raised by him.
static void open_as_many_as_allowed() {
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char** argv) {
    using namespace ringcast::tests;
    open_as_many_as_allowed();
    alarm(240);  // a test that hangs is a test that fails
    int ran = 0, failed = 0;
    for (const Test& test : registered()) {
        if ((argc > 1 && test.subject != argv[1]) || (argc > 2 && test.name != argv[2])) continue;
        ++ran;
        const char* outcome = "ok";
        std::string why;
        try {
            test.run();
        } catch (const std::exception& e) {
            outcome = "FAILED";
            why = e.what();
            ++failed;
        }
        std::printf("%-6s %s.%s %s\n", outcome, test.subject.data(), test.name.data(), why.c_str());
        std::fflush(stdout);
    }
    if (ran == 0) std::printf("no such test\n");
    return ran == 0 || failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
