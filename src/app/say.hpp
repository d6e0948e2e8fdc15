// One line for a person on stderr, whole even when several ranks speak at once.
#pragma once

#include <string>
#include <string_view>

namespace rdma_read::app {

/// The names with which the programs begin their lines.
inline constexpr std::string_view kMpiProgram = "rdma_read_mpi";
inline constexpr std::string_view kPairProgram = "rdma_read";

/// Writes "program: text" and a newline with a single write(2). Control characters in the text are
/// shown as '?', since it may quote a peer.
void say(std::string_view program, std::string_view text) noexcept;

/// Writes a text that is complete already, with its newline; nothing if it is empty.
void print_to_stderr(std::string_view text) noexcept;

/// "error; hint", or just the error.
[[nodiscard]] std::string with_hint(std::string_view error, std::string_view hint);

}  // namespace rdma_read::app
