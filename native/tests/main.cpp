// ring_tests [SUBJECT [NAME]]: run everything, one subject, or one test of it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/check.hpp"

int main(int argc, char** argv) {
    using namespace ringcast::tests;
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
        std::printf("%-6s %s.%s %s\n", outcome, test.subject.c_str(), test.name.c_str(), why.c_str());
        std::fflush(stdout);
    }
    if (ran == 0) std::printf("no such test\n");
    return ran == 0 || failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
