#include "variables/table.hpp"

namespace ringcast::variables {

bool good_name(std::string_view name) {
    if (name.empty() || name.size() > kMostNameBytes || name.front() == '/' || name.back() == '/') return false;
    char before = 0;
    for (char c : name) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && std::string_view("_.:+=~-/[]").find(c) == std::string_view::npos) return false;
        if (c == '/' && before == '/') return false;
        before = c;
    }
    return true;
}

u32 Table::find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? kMostVariables : found->second;
}

u32 Table::put(u32 index, std::string_view name, Type type) {
    if (index >= size()) {
        names_.resize(index + 1);
        types_.resize(index + 1, Type::none);
        bits_.resize(index + 1);
        times_.resize(index + 1);
        said_.resize(index + 1);
        blobs_.resize(index + 1);
    }
    names_[index] = name;
    types_[index] = type;
    by_name_.emplace(name, index);
    ++live_;
    return index;
}

bool Table::declare(u32 index, std::string_view name, Type type) {
    if (index < size() && !names_[index].empty()) return types_[index] == type && names_[index] == name;
    if (find(name) != kMostVariables) return false;
    put(index, name, type);
    return true;
}

void Table::remove(u32 index) {
    if (!has(index)) return;
    by_name_.erase(names_[index]);
    types_[index] = Type::none;
    blobs_[index].clear();
    --live_;
}

std::vector<u32> Table::indices() const {
    std::vector<u32> out;
    out.reserve(live_);
    for (u32 index = 0; index < size(); ++index)
        if (types_[index] != Type::none) out.push_back(index);
    return out;
}

}  // namespace ringcast::variables
