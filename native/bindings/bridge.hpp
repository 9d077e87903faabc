// A session's bridge as Python holds it.
#pragma once

#include <memory>

#include "bindings/errors.hpp"
#include "bindings/gil.hpp"
#include "ring/bridge.hpp"

namespace ringcast::bindings {

class PyBridge : public Owner {
public:
    std::shared_ptr<Bridge> open() {
        check("session");
        if (!bridge_) raise("ClosedError", "session");
        return bridge_;
    }
    void close() {
        const auto bridge = std::move(bridge_);
        if (!bridge) return;
        const Released released;
        bridge->close();
    }

private:
    std::shared_ptr<Bridge> bridge_ = std::make_shared<Bridge>();
};

}  // namespace ringcast::bindings
