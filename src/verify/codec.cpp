// Encodes by Boost.Serialization; decodes with every length and enumerator checked.
#include "rdma_read/verify/codec.hpp"

#include <boost/archive/archive_exception.hpp>
#include <boost/archive/binary_iarchive.hpp>
#include <boost/archive/binary_oarchive.hpp>
#include <fmt/format.h>

#include <concepts>
#include <exception>
#include <ios>
#include <limits>
#include <map>
#include <optional>
#include <streambuf>
#include <string>
#include <type_traits>
#include <utility>

namespace rdma_read::verify {

namespace {

// Read back in another byte order, the magic is another number.
constexpr std::uint32_t kMagic = 0x5244'7652U;
constexpr std::uint16_t kVersion = 2;

enum class Content : std::uint8_t { result = 1, server_info = 2, announcement = 3 };

// Only plain numbers and runs of bytes go through the archives. What Boost would add for whole
// objects (class ids, versions, tracking) and how it loads strings and containers trust the input.
constexpr unsigned kPlain = boost::archive::no_header | boost::archive::no_codecvt
                            | boost::archive::no_xml_tag_checking | boost::archive::no_tracking;

class ByteSink : public std::streambuf {
  public:
    [[nodiscard]] std::vector<std::byte> take() noexcept { return std::move(bytes_); }

  protected:
    int_type overflow(int_type character) override {
        if (!traits_type::eq_int_type(character, traits_type::eof())) {
            bytes_.push_back(static_cast<std::byte>(traits_type::to_char_type(character)));
        }
        return traits_type::not_eof(character);
    }
    std::streamsize xsputn(const char* from, std::streamsize count) override {
        const auto* begin = reinterpret_cast<const std::byte*>(from);
        bytes_.insert(bytes_.end(), begin, begin + count);
        return count;
    }

  private:
    std::vector<std::byte> bytes_;
};

class ByteSource : public std::streambuf {
  public:
    explicit ByteSource(std::span<const std::byte> bytes) {
        // The get area has no const form; nothing here or in an input archive writes to it.
        auto* begin = reinterpret_cast<char*>(const_cast<std::byte*>(bytes.data()));
        setg(begin, begin, begin + bytes.size());
    }
    [[nodiscard]] std::size_t remaining() const noexcept {
        return static_cast<std::size_t>(egptr() - gptr());
    }
};

template <typename T>
constexpr T kLast{};
template <>
constexpr Outcome kLast<Outcome> = Outcome::not_run;
template <>
constexpr MismatchKind kLast<MismatchKind> = MismatchKind::unknown;

template <typename T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
template <typename T>
concept Enumerator = std::is_enum_v<T>;

/// Writes fields.
class Saver {
  public:
    template <typename... Fields>
    void operator()(const Fields&... values) {
        (save(values), ...);
    }
    [[nodiscard]] std::vector<std::byte> take() noexcept { return sink_.take(); }

  private:
    template <Number T>
    void save(const T& number) {
        archive_ << number;
    }
    void save(const bool& flag) { save(static_cast<std::uint8_t>(flag ? 1 : 0)); }
    template <Enumerator T>
    void save(const T& enumerator) {
        save(static_cast<std::underlying_type_t<T>>(enumerator));
    }
    void save(const std::string& text) {
        save_count(text.size());
        archive_.save_binary(text.data(), text.size());
    }
    void save(const RunId& run) { archive_.save_binary(run.data(), run.size()); }
    template <typename T>
    void save(const std::optional<T>& value) {
        save(value.has_value());
        if (value) {
            save(*value);
        }
    }
    template <typename T>
    void save(const std::vector<T>& values) {
        save_count(values.size());
        for (const T& value : values) {
            save(value);
        }
    }
    template <typename T>
    void save(const std::map<std::string, T>& values) {
        save_count(values.size());
        for (const auto& [name, value] : values) {
            save(name);
            save(value);
        }
    }
    template <typename T>
    requires std::is_class_v<T>
    void save(const T& object) { fields(*this, object); }
    void save_count(std::size_t count) {
        if (count > std::numeric_limits<std::uint32_t>::max()) {
            throw CodecError("cannot encode 2^32 or more elements of one field");
        }
        save(static_cast<std::uint32_t>(count));
    }

    ByteSink sink_;
    boost::archive::binary_oarchive archive_{sink_, kPlain};
};

/// Reads fields, and refuses what Saver does not write.
class Loader {
  public:
    explicit Loader(std::span<const std::byte> bytes) : source_(bytes) {}

    template <typename... Fields>
    void operator()(Fields&... values) {
        (load(values), ...);
    }
    [[nodiscard]] std::size_t remaining() const noexcept { return source_.remaining(); }

  private:
    template <Number T>
    void load(T& number) {
        archive_ >> number;
    }
    void load(bool& flag) {
        std::uint8_t value = 0;
        load(value);
        if (value > 1) {
            throw CodecError(fmt::format("a flag is {}", value));
        }
        flag = value == 1;
    }
    template <Enumerator T>
    void load(T& enumerator) {
        std::underlying_type_t<T> value{};
        load(value);
        if (value > static_cast<std::underlying_type_t<T>>(kLast<T>)) {
            throw CodecError(fmt::format("there is no enumerator {}", value));
        }
        enumerator = static_cast<T>(value);
    }
    void load(std::string& text) {
        text.resize(load_count());
        archive_.load_binary(text.data(), text.size());
    }
    void load(RunId& run) { archive_.load_binary(run.data(), run.size()); }
    template <typename T>
    void load(std::optional<T>& value) {
        bool present = false;
        load(present);
        if (present) {
            load(value.emplace());
        }
    }
    // Elements are added one by one, so memory grows only as long as the input has bytes for them.
    template <typename T>
    void load(std::vector<T>& values) {
        for (std::uint32_t left = load_count(); left > 0; --left) {
            load(values.emplace_back());
        }
    }
    template <typename T>
    void load(std::map<std::string, T>& values) {
        for (std::uint32_t left = load_count(); left > 0; --left) {
            std::string name;
            load(name);
            const auto [at, inserted] = values.try_emplace(std::move(name));
            if (!inserted) {
                throw CodecError("a name occurs twice");
            }
            load(at->second);
        }
    }
    template <typename T>
    requires std::is_class_v<T>
    void load(T& object) { fields(*this, object); }
    // Every element takes at least one byte.
    std::uint32_t load_count() {
        std::uint32_t count = 0;
        load(count);
        if (count > remaining()) {
            throw CodecError(
                fmt::format("{} elements are announced in {} bytes", count, remaining()));
        }
        return count;
    }

    ByteSource source_;
    boost::archive::binary_iarchive archive_{source_, kPlain};
};

// The fields of each type, in their order in the bytes; T is const for a Saver. A change here is a
// change of kVersion.
template <typename T, typename U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

template <typename Archive, Is<Mismatch> T>
void fields(Archive& archive, T& mismatch) {
    archive(mismatch.read, mismatch.offset, mismatch.length, mismatch.kind, mismatch.detail,
            mismatch.phase);
}

template <typename Archive, Is<LatencySummary> T>
void fields(Archive& archive, T& latency) {
    archive(latency.min, latency.p50, latency.p90, latency.p99, latency.p999, latency.max,
            latency.samples);
}

template <typename Archive, Is<SizeResult> T>
void fields(Archive& archive, T& size) {
    archive(size.size, size.reads, size.bytes_read, size.bytes_verified, size.mismatched_reads,
            size.mismatches, size.guard_intact, size.depth, size.latency_us,
            size.bandwidth_bytes_per_s, size.reads_per_s, size.seconds, size.checking_s);
}

template <typename Archive, Is<Path> T>
void fields(Archive& archive, T& path) {
    archive(path.local_device, path.local_port_num, path.local_address, path.remote_address,
            path.gid, path.mtu, path.depth_negotiated, path.rate_gbps);
}

template <typename Archive, Is<SelfTest> T>
void fields(Archive& archive, T& test) {
    archive(test.planted_error_found, test.wrong_key_refused, test.out_of_bounds_refused);
}

template <typename Archive, Is<Result> T>
void fields(Archive& archive, T& result) {
    archive(result.server_rank, result.reader_rank, result.server_host, result.reader_host,
            result.outcome, result.phase, result.error, result.hint, result.stopped_by,
            result.confirmed, result.path, result.connect_ms, result.attempts,
            result.attempt_errors, result.read_started, result.read_ended, result.sizes,
            result.counters, result.notes, result.warnings, result.clock_ns, result.cores,
            result.self_test);
}

template <typename Archive, Is<ServerInfo> T>
void fields(Archive& archive, T& server) {
    archive(server.rank, server.host, server.device, server.port_num, server.address, server.port,
            server.link_layer, server.mtu, server.rate_gbps, server.cpu_s_while_serving,
            server.serving_s, server.connections, server.stopped_by);
}

template <typename Archive, Is<Announcement> T>
void fields(Archive& archive, T& announcement) {
    archive(announcement.usable, announcement.run, announcement.server_rank,
            announcement.buffer_bytes, announcement.server, announcement.error, announcement.hint);
}

template <typename T>
std::vector<std::byte> encode_as(Content content, const T& value) {
    Saver save;
    save(kMagic, kVersion, static_cast<std::uint8_t>(content), value);
    return save.take();
}

template <typename T>
T decode_as(Content content, std::span<const std::byte> bytes) {
    try {
        Loader load(bytes);
        std::uint32_t magic = 0;
        std::uint16_t version = 0;
        std::uint8_t kind = 0;
        load(magic);
        if (magic != kMagic) {
            throw CodecError("not from this program, or from a host of another byte order");
        }
        load(version, kind);
        if (version != kVersion) {
            throw CodecError(
                fmt::format("format {} of another version, not {}", version, kVersion));
        }
        if (kind != static_cast<std::uint8_t>(content)) {
            throw CodecError(
                fmt::format("a message of kind {}, not {}", kind, static_cast<unsigned>(content)));
        }
        T value;
        load(value);
        if (load.remaining() != 0) {
            throw CodecError(fmt::format("{} bytes too many", load.remaining()));
        }
        return value;
    } catch (const boost::archive::archive_exception&) {
        throw CodecError(fmt::format("cut short after {} bytes", bytes.size()));
    }
}

}  // namespace

std::vector<std::byte> encode(const Result& result) {
    return encode_as(Content::result, result);
}

std::vector<std::byte> encode(const ServerInfo& server) {
    return encode_as(Content::server_info, server);
}

std::vector<std::byte> encode(const Announcement& announcement) {
    return encode_as(Content::announcement, announcement);
}

Result decode_result(std::span<const std::byte> bytes) {
    return decode_as<Result>(Content::result, bytes);
}

ServerInfo decode_server_info(std::span<const std::byte> bytes) {
    return decode_as<ServerInfo>(Content::server_info, bytes);
}

Announcement decode_announcement(std::span<const std::byte> bytes) {
    return decode_as<Announcement>(Content::announcement, bytes);
}

}  // namespace rdma_read::verify
