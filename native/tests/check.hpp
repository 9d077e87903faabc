// The whole test framework: tests register themselves under a subject, a failed check throws, main counts.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

namespace ringcast::tests {

// Bodies are out of line in main.cpp: there are a thousand checks, and each is compiled three times.
struct Registration {
    Registration(const char* subject, const char* name, void (*run)());
};

[[noreturn, gnu::cold]] void fail(const char* file, int line, const std::string& why);
[[noreturn, gnu::cold]] void fail(const char* file, int line, const char* why);

template <typename Value>
std::string shown(const Value& value) {
    if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
        return std::string(std::string_view(value));
    } else {
        return std::to_string(value);
    }
}

template <typename Left, typename Right>
[[noreturn, gnu::cold, gnu::noinline]] void fail_equal(const char* file, int line, const char* what, const Left& left,
                                                       const Right& right) {
    fail(file, line, what + (" is " + shown(left)) + ", not " + shown(right));
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
        if (!(left_ == right_)) ringcast::tests::fail_equal(__FILE__, __LINE__, #a, left_, right_);       \
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
