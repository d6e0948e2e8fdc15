// What this host is called, and what time it is.
#pragma once

#include <string>

namespace rdma_read::app {

/// gethostname(2), up to the first dot. For people only: it says nothing about addresses.
[[nodiscard]] std::string host_name();

/// The time as ISO 8601 in UTC, "2026-01-31T12:34:56Z".
[[nodiscard]] std::string utc_now();

/// The same with microseconds, "2026-01-31T12:34:56.012345Z", so that times can be compared.
[[nodiscard]] std::string utc_now_precisely();

}  // namespace rdma_read::app
