#include "adapt/trees.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace ringcast::adapt {
namespace {

constexpr std::size_t kAtOnce = 8;

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

}  // namespace

Trees::Trees(Features features, const std::vector<std::uint32_t>& roots, const std::vector<Branch>& nodes, std::vector<double> leaves,
             std::size_t labels)
    : features_(std::move(features)), labels_(labels), leaves_(std::move(leaves)) {
    if (labels_ == 0 || leaves_.size() % labels_ != 0) refuse("leaves have not one value for each label");
    nodes_.reserve(nodes.size());
    for (std::size_t tree = 0; tree < roots.size(); ++tree) {
        const std::size_t end = tree + 1 < roots.size() ? roots[tree + 1] : nodes.size();
        if (roots[tree] >= end || end > nodes.size()) refuse("a tree has no nodes");
        roots_.push_back(static_cast<std::uint32_t>(add_tree(nodes, roots[tree], end)));
    }
}

// Breadth first, so that a level lies together and a node needs to know one child only. A node that two parents name is there twice.
std::size_t Trees::add_tree(const std::vector<Branch>& nodes, std::size_t begin, std::size_t end) {
    const std::size_t root = nodes_.size(), most = root + (end - begin);
    std::vector<std::size_t> from{begin};
    nodes_.emplace_back();
    for (std::size_t done = 0; done < from.size(); ++done) {
        const Branch& one = nodes[from[done]];
        Node node{one.threshold, 0, -1};
        if (one.left == 0) {
            if ((std::uint64_t{one.right} + 1) * labels_ > leaves_.size()) refuse("a node names a leaf that is not there");
            node.at = static_cast<std::uint32_t>(one.right * labels_);
        } else {
            const std::size_t left = begin + one.left, right = begin + one.right;
            if (one.feature >= features_.size() || std::min(left, right) <= from[done] || std::max(left, right) >= end)
                refuse("a node names a feature or a node that is not there");
            node.feature = static_cast<std::int32_t>(one.feature);
            node.at = static_cast<std::uint32_t>(nodes_.size());
            from.push_back(left), from.push_back(right);
            nodes_.resize(nodes_.size() + 2);
            if (nodes_.size() > most) refuse("a node has two parents");
        }
        nodes_[root + done] = node;
    }
    return root;
}

void Trees::scores(const double* numbers, Scratch& scratch, double* scores) const {
    const double* const values = features_.values(numbers, scratch);
    std::fill(scores, scores + labels_, 0.0);
    // Several trees at once: a step of one waits for memory, and the others' do not depend on it.
    for (std::size_t first = 0; first < roots_.size(); first += kAtOnce) {
        const std::size_t number = std::min(kAtOnce, roots_.size() - first);
        std::array<const Node*, kAtOnce> at;
        for (std::size_t i = 0; i < number; ++i) at[i] = &nodes_[roots_[first + i]];
        for (bool walking = true; walking;) {
            walking = false;
            for (std::size_t i = 0; i < number; ++i) {
                const Node* const node = at[i];
                if (node->feature < 0) continue;
                at[i] = &nodes_[node->at + (values[node->feature] <= node->threshold ? 0 : 1)];
                walking = true;
            }
        }
        for (std::size_t i = 0; i < number; ++i) {
            const double* leaf = &leaves_[at[i]->at];
            for (std::size_t label = 0; label < labels_; ++label) scores[label] += leaf[label];
        }
    }
}

}  // namespace ringcast::adapt
