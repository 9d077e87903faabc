// The whole test framework: tests register themselves under a subject, a failed check throws, main counts.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ringcast::tests {

struct Test {
    std::string subject, name;
    void (*run)();
};

inline std::vector<Test>& registered() {
    static std::vector<Test> tests;
    return tests;
}

struct Registration {
    Registration(const char* subject, const char* name, void (*run)()) { registered().push_back({subject, name, run}); }
};

template <typename... Words>
[[noreturn]] void fail(const char* file, int line, const Words&... words) {
    std::ostringstream text;
    text << file << ":" << line << ": ";
    ((text << words), ...);
    throw std::logic_error(text.str());
}

}  // namespace ringcast::tests

#define TEST(subject, name)                                                            \
    static void subject##_##name();                                                    \
    static const ringcast::tests::Registration register_##subject##_##name(#subject, #name, subject##_##name); \
    static void subject##_##name()

#define CHECK(condition) \
    ((condition) ? void() : ringcast::tests::fail(__FILE__, __LINE__, #condition))

#define CHECK_EQ(a, b)                                                                                    \
    do {                                                                                                  \
        const auto left_ = (a);                                                                           \
        const auto right_ = (b);                                                                          \
        if (!(left_ == right_)) ringcast::tests::fail(__FILE__, __LINE__, #a " is ", left_, ", not ", right_); \
    } while (false)

#define CHECK_THROWS(kind, expression)                                              \
    do {                                                                            \
        bool thrown_ = false;                                                       \
        try {                                                                       \
            expression;                                                             \
        } catch (const kind&) {                                                     \
            thrown_ = true;                                                         \
        }                                                                           \
        if (!thrown_) ringcast::tests::fail(__FILE__, __LINE__, #expression " did not throw " #kind); \
    } while (false)
