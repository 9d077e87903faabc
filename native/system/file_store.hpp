// Files that a process keeps without a descriptor for each of them, so that they do not count towards its limit of open files.
//
// They are in io_uring's tables of registered files, each of which the same limit bounds; an operation that Linux has since 6.8
// makes a descriptor of one again. Where that is missing, too old or forbidden, `keep` says no. One thread at a time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "ring/memory.hpp"
#include "system/io_uring.hpp"

namespace ringcast {

class FileStore {
public:
    FileStore();
    FileStore(const FileStore&) = delete;
    FileStore& operator=(const FileStore&) = delete;

    // Where it is kept. The descriptor stays the caller's.
    std::optional<u32> keep(int fd);
    // A descriptor of it, which no child inherits. Throws OsRefused.
    Descriptor open(u32 place);
    void drop(u32 place);
    std::size_t size() const { return size_; }

private:
    struct Table {
        std::unique_ptr<io_uring::Queues> queues;
        std::vector<u32> free;
    };
    Table* with_room();
    bool mine() const;

    pid_t process_;  // a forked child has the tables' descriptors and not the queues
    std::vector<Table> tables_;
    std::size_t size_ = 0;
    bool refused_ = false;
};

}  // namespace ringcast
