// Recognizes where wrong bytes came from, word by word; diagnosis.hpp has the rules in order.
#include "rdma_read/verify/diagnosis.hpp"

#include "rdma_read/verify/destination.hpp"
#include "verify/pattern_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>

namespace rdma_read::verify {

namespace {

// How many bases of other ranks are tried for one read, or one pass over all ranks if that is more:
// it bounds the time for data in which nothing is recognized.
constexpr std::uint64_t kBasesToTry = 65536;
// A place that is recognized by chance must be rarer than one in 2^16.
constexpr unsigned kEvidenceBits = 16;
// Wrong bits that are named one by one.
constexpr std::size_t kBitsNamed = 16;

/// Where wrong bytes came from, as far as it predicts other bytes of the same read.
struct Source {
    MismatchKind kind = MismatchKind::unknown;
    std::uint64_t base = 0;   // of the pattern, for the kinds that have one
    std::uint64_t start = 0;  // byte offset in that pattern of the read's first byte, modulo 2^64
    std::uint64_t constant = 0;  // the word, for untouched and zeros
    std::uint32_t rank = 0;      // for other_server
};

/// A stretch of wrong bytes, in bytes from the start of the read. A word that is wrong as a whole
/// is covered as a whole, although its outer bytes may be right by chance.
struct Stretch {
    Source source;
    std::size_t covered_begin = 0;
    std::size_t covered_end = 0;
    std::size_t wrong_begin = 0;
    std::size_t wrong_end = 0;
};

/// One word of the data, the last one perhaps of less than eight bytes; all numbers are masked.
struct Word {
    std::size_t index = 0;  // in the read
    unsigned bytes = 0;
    std::uint64_t mask = 0;
    std::uint64_t found = 0;
    std::uint64_t expected = 0;
    unsigned first_wrong = 0;  // bytes in the word
    unsigned last_wrong = 0;
    unsigned wrong_bytes = 0;

    [[nodiscard]] std::uint64_t difference() const noexcept { return found ^ expected; }
    [[nodiscard]] bool wrong() const noexcept { return found != expected; }
    [[nodiscard]] bool wrong_at(unsigned byte) const noexcept {
        return (difference() >> (8 * byte) & 0xFFU) != 0;
    }
    // Whether bytes [begin, end) are those of `other`.
    [[nodiscard]] bool equals(std::uint64_t other, unsigned begin, unsigned end) const noexcept {
        const std::uint64_t upto =
            end == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * end)) - 1;
        return (((found ^ other) & upto) >> (8 * begin)) == 0;
    }
};

// The word at `index` of the read if all of it came from `source`.
std::uint64_t predicted(const Source& source, std::size_t index) noexcept {
    switch (source.kind) {
        case MismatchKind::untouched:
        case MismatchKind::zeros:
            return source.constant;
        case MismatchKind::stale:
        case MismatchKind::shifted:
        case MismatchKind::other_server:
        case MismatchKind::other_run:
            break;
        case MismatchKind::bit_flip:
        case MismatchKind::unknown:
            return 0;
    }
    const std::uint64_t at = source.start + 8 * index;
    const std::uint64_t word = source.base + at / 8 * Pattern::kStep;
    const unsigned bits = 8 * static_cast<unsigned>(at % 8);
    return bits == 0 ? word : word >> bits | (word + Pattern::kStep) << (64 - bits);
}

class Diagnosis {
  public:
    Diagnosis(const DiagnosisContext& context, std::span<const std::byte> data,
              std::uint64_t offset, std::size_t limit)
        : context_(context),
          data_(data),
          offset_(offset),
          limit_(limit),
          words_(data.size() / 8 + (data.size() % 8 == 0 ? 0 : 1)),
          buffer_words_(context.buffer_bytes / 8 + (context.buffer_bytes % 8 == 0 ? 0 : 1)),
          bases_to_try_(std::max<std::uint64_t>(kBasesToTry, context.ranks)) {}

    [[nodiscard]] std::vector<Mismatch> run();

  private:
    [[nodiscard]] Word word_at(std::size_t index) const noexcept;
    [[nodiscard]] std::uint64_t unaligned(std::size_t at) const noexcept;

    void explain(const Word& word);
    [[nodiscard]] bool continues(const Word& word);
    [[nodiscard]] std::optional<Source> left_behind(const Word& word) const noexcept;
    [[nodiscard]] std::optional<Source> from_pattern(const Word& word);
    [[nodiscard]] bool in_buffer(const Word& word, std::uint64_t index,
                                 std::uint64_t patterns) const noexcept;
    [[nodiscard]] std::optional<Source> displaced(const Word& word) const noexcept;
    [[nodiscard]] std::optional<Source> of_other_server(const Word& word);
    [[nodiscard]] std::optional<Source> of_other_run(const Word& word) const noexcept;
    [[nodiscard]] std::optional<Source> begins_in(const Word& word);
    void add_groups(const Word& word);
    void add(const Source& source, const Word& word, unsigned covered_begin, unsigned covered_end,
             unsigned first_wrong, unsigned last_wrong);

    [[nodiscard]] Mismatch describe(const Stretch& stretch) const;
    [[nodiscard]] std::string detail(const Stretch& stretch) const;
    [[nodiscard]] std::string wrong_bits(const Stretch& stretch) const;

    const DiagnosisContext& context_;
    std::span<const std::byte> data_;
    std::uint64_t offset_;
    std::size_t limit_;
    std::size_t words_;
    std::uint64_t buffer_words_;
    std::uint64_t bases_to_try_;
    std::vector<Stretch> stretches_;
};

std::vector<Mismatch> Diagnosis::run() {
    // One more than is wanted: a stretch is whole only when the next one has begun.
    for (std::size_t i = 0; i < words_ && stretches_.size() <= limit_; ++i) {
        if (const Word word = word_at(i); word.wrong()) {
            explain(word);
        }
    }
    stretches_.resize(std::min(stretches_.size(), limit_));
    std::vector<Mismatch> mismatches;
    mismatches.reserve(stretches_.size());
    std::ranges::transform(stretches_, std::back_inserter(mismatches),
                           [this](const Stretch& stretch) { return describe(stretch); });
    return mismatches;
}

Word Diagnosis::word_at(std::size_t index) const noexcept {
    Word word;
    word.index = index;
    word.bytes = static_cast<unsigned>(std::min<std::size_t>(8, data_.size() - 8 * index));
    word.mask = ~std::uint64_t{0} >> (64 - 8 * word.bytes);
    std::uint64_t found = 0;
    std::memcpy(&found, data_.data() + 8 * index, word.bytes);
    word.found = kernels::little_endian(found) & word.mask;
    word.expected = context_.expected.word(offset_ / 8 + index) & word.mask;
    for (unsigned byte = 0; byte < word.bytes; ++byte) {
        if (word.wrong_at(byte)) {
            word.first_wrong = word.wrong_bytes == 0 ? byte : word.first_wrong;
            word.last_wrong = byte;
            ++word.wrong_bytes;
        }
    }
    return word;
}

std::uint64_t Diagnosis::unaligned(std::size_t at) const noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, data_.data() + at, sizeof word);
    return kernels::little_endian(word);
}

void Diagnosis::explain(const Word& word) {
    if (continues(word)) {
        return;
    }
    if (const auto source = left_behind(word)) {
        const bool to_the_end =
            word.equals(predicted(*source, word.index), word.first_wrong, word.bytes);
        add(*source, word, word.first_wrong, to_the_end ? word.bytes : word.last_wrong + 1,
            word.first_wrong, word.last_wrong);
        return;
    }
    if (word.wrong_bytes > 1) {
        if (const auto source = from_pattern(word)) {
            add(*source, word, 0, word.bytes, word.first_wrong, word.last_wrong);
            return;
        }
    }
    if (const auto source = begins_in(word)) {
        add(*source, word, word.first_wrong, word.bytes, word.first_wrong, word.last_wrong);
        return;
    }
    add_groups(word);
}

// Rule 1.
bool Diagnosis::continues(const Word& word) {
    if (stretches_.empty()) {
        return false;
    }
    Stretch& last = stretches_.back();
    if (last.source.kind == MismatchKind::unknown || last.source.kind == MismatchKind::bit_flip
        || last.covered_end != 8 * word.index
        || !word.equals(predicted(last.source, word.index), 0, word.last_wrong + 1)) {
        return false;
    }
    const bool whole = word.equals(predicted(last.source, word.index), 0, word.bytes);
    last.covered_end = 8 * word.index + (whole ? word.bytes : word.last_wrong + 1);
    last.wrong_end = 8 * word.index + word.last_wrong + 1;
    return true;
}

// Rule 2.
std::optional<Source> Diagnosis::left_behind(const Word& word) const noexcept {
    const bool enough = word.last_wrong > word.first_wrong || word.bytes == 1;
    const auto fits = [&](const Source& source) {
        return enough
               && word.equals(predicted(source, word.index), word.first_wrong, word.last_wrong + 1);
    };
    for (const std::uint64_t earlier : context_.earlier_offsets) {
        const Source source{MismatchKind::stale, context_.expected.base(), earlier, 0, 0};
        if (fits(source)) {
            return source;
        }
    }
    // The complement stands in small slots whose first expected bytes are those of the word.
    for (const std::uint64_t constant : {kUntouchedWord, ~kUntouchedWord}) {
        const Source source{MismatchKind::untouched, 0, 0, constant, 0};
        if (fits(source)) {
            return source;
        }
    }
    const Source source{MismatchKind::zeros, 0, 0, 0, 0};
    return fits(source) ? std::optional(source) : std::nullopt;
}

// Rule 3.
std::optional<Source> Diagnosis::from_pattern(const Word& word) {
    if (const auto source = displaced(word)) {
        return source;
    }
    if (const auto source = of_other_server(word)) {
        return source;
    }
    return of_other_run(word);
}

// Whether a word of a pattern is at a place in the buffer, and not by chance when `patterns` many
// were tried.
bool Diagnosis::in_buffer(const Word& word, std::uint64_t index,
                          std::uint64_t patterns) const noexcept {
    return (index & word.mask) < buffer_words_
           && buffer_words_ <= (word.mask >> kEvidenceBits) / patterns;
}

std::optional<Source> Diagnosis::displaced(const Word& word) const noexcept {
    const Pattern& pattern = context_.expected;
    const auto from = [&](std::uint64_t start) {
        return Source{MismatchKind::shifted, pattern.base(), start, 0, 0};
    };
    // The inverse of an odd number modulo 2^64 is one modulo 2^(8n) as well: what the low bytes of
    // a word say of its index is right as far as they go.
    const std::uint64_t index = pattern.index_of(word.found) & word.mask;
    if (in_buffer(word, index, 1)) {
        return from(8 * (index - word.index));
    }
    // Displaced by some bytes, the source's whole words begin inside this word.
    for (unsigned shift = 1; shift < 8 && word.bytes == 8; ++shift) {
        const std::size_t at = 8 * word.index + shift;
        if (at + 8 > data_.size()) {
            break;
        }
        const std::uint64_t next = pattern.index_of(unaligned(at));
        if (next == 0 || next >= buffer_words_) {
            continue;
        }
        const Source source = from(8 * next - at);
        if (word.equals(predicted(source, word.index), 0, 8)) {
            return source;
        }
    }
    return std::nullopt;
}

std::optional<Source> Diagnosis::of_other_server(const Word& word) {
    if (context_.ranks == 0 || bases_to_try_ < context_.ranks
        || buffer_words_ > (word.mask >> kEvidenceBits) / context_.ranks) {
        return std::nullopt;
    }
    bases_to_try_ -= context_.ranks;
    for (std::uint32_t rank = 0; rank < context_.ranks; ++rank) {
        if (rank == context_.server_rank) {
            continue;
        }
        const Pattern pattern(context_.run, rank);
        const std::uint64_t index = pattern.index_of(word.found) & word.mask;
        if (in_buffer(word, index, context_.ranks)) {
            return Source{MismatchKind::other_server, pattern.base(), 8 * (index - word.index), 0,
                          rank};
        }
    }
    return std::nullopt;
}

std::optional<Source> Diagnosis::of_other_run(const Word& word) const noexcept {
    if (8 * (word.index + 2) > data_.size()
        || unaligned(8 * (word.index + 1)) != word.found + Pattern::kStep) {
        return std::nullopt;
    }
    return Source{MismatchKind::other_run, word.found - word.index * Pattern::kStep, 0, 0, 0};
}

// Rule 4: a stretch that begins inside a word is recognized by the word after it.
std::optional<Source> Diagnosis::begins_in(const Word& word) {
    if (word.first_wrong == 0 || word.last_wrong + 1 != word.bytes || word.index + 1 == words_) {
        return std::nullopt;
    }
    const Word next = word_at(word.index + 1);
    if (next.wrong_bytes < 2) {
        return std::nullopt;
    }
    auto source = left_behind(next);
    if (!source) {
        source = from_pattern(next);
    }
    if (source && word.equals(predicted(*source, word.index), word.first_wrong, word.bytes)
        && next.equals(predicted(*source, next.index), 0, next.last_wrong + 1)) {
        return source;
    }
    return std::nullopt;
}

// Rules 5 and 6.
void Diagnosis::add_groups(const Word& word) {
    // Among millions of random words some have three right bytes, but then the one before has
    // fewer.
    const bool after_unknown = !stretches_.empty()
                               && stretches_.back().source.kind == MismatchKind::unknown
                               && stretches_.back().covered_end == 8 * word.index;
    const unsigned right_by_chance = after_unknown ? word.bytes / 2 : word.bytes / 4;
    if (word.wrong_bytes > 1 && word.bytes - word.wrong_bytes <= right_by_chance) {
        add(Source{}, word, 0, word.bytes, word.first_wrong, word.last_wrong);
        return;
    }
    for (unsigned byte = word.first_wrong; byte <= word.last_wrong; ++byte) {
        if (!word.wrong_at(byte)) {
            continue;
        }
        const unsigned first = byte;
        bool one_bit_each = true;
        for (; byte < word.bytes && word.wrong_at(byte); ++byte) {
            one_bit_each =
                one_bit_each && std::popcount(word.difference() >> (8 * byte) & 0xFFU) == 1;
        }
        Source source;
        source.kind =
            one_bit_each || byte - first == 1 ? MismatchKind::bit_flip : MismatchKind::unknown;
        add(source, word, first, byte, first, byte - 1);
    }
}

void Diagnosis::add(const Source& source, const Word& word, unsigned covered_begin,
                    unsigned covered_end, unsigned first_wrong, unsigned last_wrong) {
    const std::size_t start = 8 * word.index;
    const bool names_itself =
        source.kind != MismatchKind::unknown && source.kind != MismatchKind::bit_flip;
    // A known source would have been continued by rule 1; the others have only their place.
    if (!names_itself && !stretches_.empty() && stretches_.back().source.kind == source.kind
        && stretches_.back().covered_end == start + covered_begin) {
        stretches_.back().covered_end = start + covered_end;
        stretches_.back().wrong_end = start + last_wrong + 1;
        return;
    }
    stretches_.push_back({source, start + covered_begin, start + covered_end, start + first_wrong,
                          start + last_wrong + 1});
}

Mismatch Diagnosis::describe(const Stretch& stretch) const {
    Mismatch mismatch;
    mismatch.offset = offset_ + stretch.wrong_begin;
    mismatch.length = stretch.wrong_end - stretch.wrong_begin;
    mismatch.kind = stretch.source.kind;
    mismatch.detail = fmt::format("{}; byte {} of the read", detail(stretch), stretch.wrong_begin);
    return mismatch;
}

std::string Diagnosis::detail(const Stretch& stretch) const {
    const Source& source = stretch.source;
    const std::uint64_t origin = source.start + stretch.wrong_begin;
    switch (source.kind) {
        case MismatchKind::untouched:
            return "the memory is as it was before the first read";
        case MismatchKind::stale:
            return fmt::format("the data of the earlier read from offset {}", source.start);
        case MismatchKind::shifted:
            return fmt::format("the data belongs to offset {}", origin);
        case MismatchKind::other_server:
            return fmt::format("the data belongs to rank {}, offset {}", source.rank, origin);
        case MismatchKind::other_run:
            return "the data is a pattern, but of no server of this run";
        case MismatchKind::bit_flip:
            return wrong_bits(stretch);
        case MismatchKind::zeros:
            return "the bytes are zero";
        case MismatchKind::unknown:
            break;
    }
    const Word word = word_at(stretch.wrong_begin / 8);
    return fmt::format("expected 0x{:0{}x}, found 0x{:0{}x}", word.expected, 2 * word.bytes,
                       word.found, 2 * word.bytes);
}

std::string Diagnosis::wrong_bits(const Stretch& stretch) const {
    std::string text;
    std::size_t named = 0;
    for (std::size_t at = stretch.wrong_begin; at < stretch.wrong_end; ++at) {
        const Word word = word_at(at / 8);
        const auto difference = static_cast<unsigned>(word.difference() >> (8 * (at % 8)) & 0xFFU);
        if (named >= kBitsNamed) {
            return text + " and more";
        }
        text += fmt::format("{}bit{} ", text.empty() ? "" : ", ",
                            std::popcount(difference) == 1 ? "" : "s");
        for (unsigned left = difference; left != 0; left &= left - 1, ++named) {
            text += fmt::format("{}{}", left == difference ? "" : "+", std::countr_zero(left));
        }
        text += fmt::format(" of byte {}", offset_ + at);
    }
    return text;
}

}  // namespace

std::vector<Mismatch> diagnose(const DiagnosisContext& context, std::span<const std::byte> data,
                               std::uint64_t offset, std::size_t limit) {
    return Diagnosis(context, data, offset, limit).run();
}

}  // namespace rdma_read::verify
