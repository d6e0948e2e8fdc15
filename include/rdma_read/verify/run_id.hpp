// The identity of one run: 128 random bits that every rank of the run knows and no other run has.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace rdma_read::verify {

/// 128 random bits. A stranger who does not know them can neither connect to a server of the run
/// nor be mistaken for one.
using RunId = std::array<std::uint8_t, 16>;

/// A fresh run id from the kernel's generator (getrandom(2)).
/// Throws std::system_error when the kernel gives none.
[[nodiscard]] RunId random_run_id();

/// The first eight hexadecimal digits: enough to tell runs apart in a log. The rest is what admits
/// a reader to a server and is never printed.
[[nodiscard]] std::string short_name(const RunId& run);

}  // namespace rdma_read::verify
