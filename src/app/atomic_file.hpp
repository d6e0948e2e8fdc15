// A file that appears whole or not at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rdma_read::app {

/// Replaces the file `path` by `text`, or creates it: readers see the old content or the new one,
/// never a part, also after a crash. The text goes to a temporary file in the same folder, which is
/// synced and then renamed. A symbolic link is followed to the file it leads to, so the link stays.
///
/// The file's mode is that of a newly created file (0666 less the umask), or that of the file it
/// replaces. A target that exists and is not a regular file (a terminal, a pipe, /dev/full) cannot
/// be replaced and is written directly; a pipe needs a reader, or it fails. So is the file that
/// stdout or stderr leads to (/dev/stdout): to replace it would lose what else is printed.
///
/// \throws std::system_error naming the file, the call and the cause; no temporary file is left
///         then, and an existing regular file is as it was
void write_whole(const std::string& path, std::string_view text);

/// Why write_whole would fail right now, as half a sentence; nullopt if nothing speaks against it.
/// Creates nothing. To be told before a long run, not after.
[[nodiscard]] std::optional<std::string> why_not_writable(const std::string& path);

}  // namespace rdma_read::app
