// A secret that both ends read from a file, and the key that is made of it.
#pragma once

#include "rdma_read/rdma/wire.hpp"

#include <cstddef>
#include <string>

namespace rdma_read::app {

/// How long a secret may be, in bytes, without the newline at the end of its file.
inline constexpr std::size_t kShortestToken = 16;
inline constexpr std::size_t kLongestToken = 4096;

/// The key of the secret in a file, which stands where peers of a run have its id: a server lets
/// nobody in whose key is another. The key is a hash (SHA-256, cut to 128 bits), which does not
/// tell the secret, unless that is so simple that it can be guessed.
///
/// It keeps out who connects by accident, and who does not know the secret. It does not keep out
/// who can listen on the network: private data of a connection request is not encrypted, so the key
/// can be seen there and used again. It does not prove to a reader who the server is, and it
/// encrypts nothing that is read.
///
/// \throws UsageError if the file cannot be read, is no regular file, is open to others than its
///         owner, or its secret is too short or too long
[[nodiscard]] rdma::RunId token_key(const std::string& file);

}  // namespace rdma_read::app
