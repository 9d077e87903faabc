#include "system/file_store.hpp"

#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "ring/failure.hpp"

namespace ringcast {
namespace {

constexpr u32 kFilesOfTable = 4096;
constexpr std::uint8_t kInstall = 54;
constexpr std::uint8_t kFixedFile = 1;
constexpr u32 kUpdateFiles = 6, kRegisterFiles = 13;
constexpr u32 kSparse = 1;

struct Registration {
    u32 count, flags;
    u64 reserved, data, tags;
};
struct Update {
    u32 offset, reserved;
    u64 fds;
};

bool put(const io_uring::Queues& queues, u32 slot, int fd) {
    const Update update{slot, 0, reinterpret_cast<u64>(&fd)};
    return queues.set_up(kUpdateFiles, &update, 1) == 1;
}

}  // namespace

FileStore::FileStore() : process_(getpid()) {}

bool FileStore::mine() const { return getpid() == process_; }

FileStore::Table* FileStore::with_room() {
    for (Table& table : tables_)
        if (!table.free.empty()) return &table;
    if (refused_) return nullptr;
    auto queues = io_uring::Queues::make(1, {kInstall});
    const Registration files{kFilesOfTable, kSparse, 0, 0, 0};
    if (!queues || queues->set_up(kRegisterFiles, &files, sizeof files) < 0) {
        // Tried once: what is not allowed now is not allowed later. Beyond the first table it is for want of memory.
        refused_ = tables_.empty();
        return nullptr;
    }
    Table table{std::move(queues), {}};
    table.free.reserve(kFilesOfTable);
    for (u32 slot = kFilesOfTable; slot-- > 0;) table.free.push_back(slot);
    tables_.push_back(std::move(table));
    return &tables_.back();
}

std::optional<u32> FileStore::keep(int fd) {
    Table* const table = mine() && fd >= 0 ? with_room() : nullptr;
    if (table == nullptr) return std::nullopt;
    const u32 slot = table->free.back();
    if (!put(*table->queues, slot, fd)) return std::nullopt;
    table->free.pop_back();
    ++size_;
    return static_cast<u32>(table - tables_.data()) * kFilesOfTable + slot;
}

Descriptor FileStore::open(u32 place) {
    if (!mine() || place / kFilesOfTable >= tables_.size()) throw std::invalid_argument("nothing is kept there");
    io_uring::Queues& queues = *tables_[place / kFilesOfTable].queues;
    io_uring::Operation install{};
    install.opcode = kInstall;
    install.flags = kFixedFile;
    install.fd = static_cast<std::int32_t>(place % kFilesOfTable);
    queues.add(install);
    int result = -ENOMEM;
    if (queues.submit(1)) queues.completions([&](const io_uring::Completion& done) { result = done.result; });
    if (result < 0) throw OsRefused("cannot open a ring's memory again", -result);
    return Descriptor(result);
}

void FileStore::drop(u32 place) {
    if (!mine() || place / kFilesOfTable >= tables_.size()) return;
    Table& table = tables_[place / kFilesOfTable];
    if (!put(*table.queues, place % kFilesOfTable, -1)) return;
    table.free.push_back(place % kFilesOfTable);
    --size_;
}

}  // namespace ringcast
