// SPDX-License-Identifier: Apache-2.0
// Files as memory: open, map and write through the calls of POSIX, errors into IoError.
#include "file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "../../base/error.h"

namespace einkern::io {
namespace {

// One call never moves more than this: Linux stops at 2 GiB, other systems refuse larger counts.
constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;

[[noreturn]] void fail_errno(const std::string& source, const char* action, int error) {
  std::string reason = std::generic_category().message(error);
  if (!reason.empty()) {
    reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  }
  fail<IoError>(fmt::format("{}: cannot {}: {}", source, action, reason));
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  /// Closes now; some file systems report a full disk only here.
  bool close() noexcept { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// A file that is removed unless it has been renamed to its final name.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path) : path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  bool rename_to(const std::filesystem::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  std::filesystem::path path_;
};

struct OpenFile {
  Descriptor descriptor;
  struct stat status = {};
};

OpenFile open_to_read(const std::filesystem::path& path, const std::string& source) {
  OpenFile file{Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC))};
  if (!file.descriptor.valid() || ::fstat(file.descriptor.get(), &file.status) != 0) {
    fail_errno(source, "open", errno);
  }
  if (S_ISDIR(file.status.st_mode)) fail_errno(source, "read", EISDIR);
  return file;
}

/// Reads up to `size` bytes; less only at the end of the file.
std::size_t read_some(int fd, std::byte* to, std::size_t size, const std::string& source) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(fd, to + done, std::min(size - done, kMaxTransfer));
    if (count == 0) break;
    if (count > 0) done += static_cast<std::size_t>(count);
    if (count < 0 && errno != EINTR) fail_errno(source, "read", errno);
  }
  return done;
}

FileBytes copy_to_storage(std::span<const std::byte> bytes) {
  FileBytes file{Storage::allocate(bytes.size())};
  if (!bytes.empty()) std::memcpy(file.storage->data(), bytes.data(), bytes.size());
  return file;
}

FileBytes read_open(const OpenFile& file, const std::string& source) {
  const int fd = file.descriptor.get();
  if (S_ISREG(file.status.st_mode) && file.status.st_size > 0) {
    const auto size = static_cast<std::size_t>(file.status.st_size);
    FileBytes result{Storage::allocate(size)};
    const std::size_t got =
        read_some(fd, static_cast<std::byte*>(result.storage->data()), size, source);
    // A file that was shortened meanwhile: what was not read must not be taken for data.
    return got == size ? result : copy_to_storage(result.view().first(got));
  }
  std::vector<std::byte> bytes;
  for (std::size_t size = 0;;) {
    bytes.resize(std::max<std::size_t>(2 * size, 1 << 16));
    const std::size_t got = read_some(fd, bytes.data() + size, bytes.size() - size, source);
    size += got;
    if (size < bytes.size()) return copy_to_storage({bytes.data(), size});
  }
}

void write_all(int fd, std::span<const std::byte> bytes, const std::string& source) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), kMaxTransfer));
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) fail_errno(source, "write", errno);
  }
}

/// What a chain of symbolic links ends at, whether that exists or not.
std::filesystem::path follow_links(std::filesystem::path path, const std::string& source) {
  std::error_code ignored;
  for (int links = 0; std::filesystem::is_symlink(path, ignored); ++links) {
    if (links == 40) fail_errno(source, "write", ELOOP);  // the limit of Linux
    path = path.parent_path() / std::filesystem::read_symlink(path, ignored);
  }
  return path;
}

/// A name in the same folder that no other file, thread or process uses; short, since the name of
/// the target may already be as long as names can be.
std::filesystem::path temporary_name(const std::filesystem::path& target) {
  static std::atomic<unsigned> counter{0};
  return target.parent_path() / fmt::format(".einkern-{}-{}.tmp", ::getpid(), counter++);
}

}  // namespace

FileBytes map_file(const std::filesystem::path& path, const std::string& source) {
  const OpenFile file = open_to_read(path, source);
  const auto size = static_cast<std::size_t>(file.status.st_size);
  if (!S_ISREG(file.status.st_mode) || size == 0) return read_open(file, source);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor.get(), 0);
  if (data == MAP_FAILED) return read_open(file, source);
  std::shared_ptr<const void> mapping(data, [size](void* start) { ::munmap(start, size); });
  return {Storage::borrow(data, size, std::move(mapping)), true};
}

FileBytes read_file(const std::filesystem::path& path, const std::string& source) {
  return read_open(open_to_read(path, source), source);
}

void replace_file(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> pieces, const std::string& source) {
  const std::filesystem::path target = follow_links(path, source);
  struct stat existing = {};
  const bool exists = ::stat(target.c_str(), &existing) == 0;
  if (exists && S_ISDIR(existing.st_mode)) fail_errno(source, "write", EISDIR);
  if (exists && ::access(target.c_str(), W_OK) != 0) fail_errno(source, "write", errno);
  if (exists && !S_ISREG(existing.st_mode)) {
    Descriptor device(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
    if (!device.valid()) fail_errno(source, "open", errno);
    for (const auto piece : pieces) write_all(device.get(), piece, source);
    if (!device.close()) fail_errno(source, "write", errno);
    return;
  }

  std::filesystem::path name;
  int fd = -1;
  do {
    name = temporary_name(target);
    fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EEXIST);
  if (fd < 0) fail_errno(source, "create", errno);
  Descriptor descriptor(fd);
  TemporaryFile temporary(std::move(name));
  if (exists && ::fchmod(fd, existing.st_mode & 07777) != 0) fail_errno(source, "write", errno);
  for (const auto piece : pieces) write_all(fd, piece, source);
  if (::fsync(fd) != 0 || !descriptor.close()) fail_errno(source, "write", errno);
  if (!temporary.rename_to(target)) fail_errno(source, "write", errno);
}

}  // namespace einkern::io
