// Follows a script.
#include "scripted_server.hpp"

#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/cm_id.hpp"
#include "rdma_read/rdma/completion_queue.hpp"
#include "rdma_read/rdma/event_channel.hpp"
#include "rdma_read/rdma/memory_region.hpp"
#include "rdma_read/rdma/queue_pair.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace rdma_read::test {

namespace {

constexpr std::size_t kMessageBytes = 256;
constexpr int kReaders = 64;

rdma::CmId bound(const rdma::EventChannel& channel, const rdma::Address& address) {
    rdma::CmId id(channel);
    id.bind(address);
    return id;
}

}  // namespace

struct ScriptedServer::Parts {
    struct Reader {
        Reader(rdma::CmIdHandle incoming, Parts& parts, const rdma::Hello& introduction)
            : hello(introduction),
              memory(2 * kMessageBytes),
              messages(parts.pd.get(), memory.bytes(), rdma::Intent::messages),
              id(std::move(incoming)),
              qp(id, parts.pd.get(), parts.cq, 1, 1) {}
        rdma::Hello hello;
        rdma::Buffer memory;
        rdma::MemoryRegion messages;
        rdma::CmId id;
        rdma::QueuePair qp;
    };

    Parts(const rdma::Address& address, std::span<std::byte> bytes, Script what)
        : script(std::move(what)),
          listener(bound(channel, address)),
          pd(rdma::allocate_pd(listener.verbs())),
          cq(listener.verbs(), 2 * kReaders),
          exposed(pd.get(), bytes, rdma::Intent::exposed_for_read) {
        cq.arm();
        listener.listen(kReaders);
    }

    void handle(rdma::CmEvent event) {
        if (event.type == RDMA_CM_EVENT_DISCONNECTED) {
            std::erase_if(readers, [&](const auto& entry) {
                if (entry.second->id.get() != event.id) {
                    return false;
                }
                entry.second->id.disconnect();
                return true;
            });
        }
        if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) {
            return;
        }
        if (!script.accepts) {
            unanswered.push_back(std::move(event.incoming));
            return;
        }
        const auto hello = rdma::decode_hello(event.private_data()).hello.value_or(rdma::Hello{});
        if (const auto refusal = script.objection ? script.objection(hello) : std::nullopt) {
            rdma::CmId(std::move(event.incoming)).reject(rdma::encode(*refusal));
            return;
        }
        auto reader = std::make_unique<Reader>(std::move(event.incoming), *this, hello);
        const std::uint32_t number = reader->qp.number();
        reader->qp.post_receive(reader->messages, reader->memory.bytes().first(kMessageBytes), 0);
        rdma::ConnectionParameters parameters;
        parameters.responder_resources = event.responder_resources;
        reader->id.accept(parameters);
        readers.emplace(number, std::move(reader));
    }

    void completed(const ibv_wc& completion) {
        const auto found = readers.find(completion.qp_num);
        if (completion.status != IBV_WC_SUCCESS || found == readers.end()) {
            return;
        }
        if (completion.wr_id == 1) {
            if (script.after_answer) {
                script.after_answer();
            }
            return;
        }
        Reader& reader = *found->second;
        const rdma::RemoteBuffer right{exposed.address(), exposed.memory().size(), exposed.rkey()};
        const auto answer = script.answer(reader.hello, right);
        if (!answer) {
            return;
        }
        const auto outgoing = reader.memory.bytes().subspan(kMessageBytes, answer->size());
        std::ranges::copy(*answer, outgoing.begin());
        reader.qp.post_send(reader.messages, outgoing, 1);
    }

    Script script;
    rdma::EventChannel channel;
    rdma::CmId listener;
    rdma::PdHandle pd;
    rdma::CompletionQueue cq;
    rdma::MemoryRegion exposed;
    std::vector<rdma::CmIdHandle> unanswered;
    std::map<std::uint32_t, std::unique_ptr<Reader>> readers;
};

ScriptedServer::ScriptedServer(const rdma::Address& address, std::span<std::byte> memory,
                               Script script)
    : parts_(std::make_unique<Parts>(address, memory, std::move(script))) {}

ScriptedServer::~ScriptedServer() = default;

rdma::Address ScriptedServer::address() const {
    return parts_->listener.local_address().value_or(rdma::Address());
}

void ScriptedServer::serve(int stop_fd) {
    Parts& parts = *parts_;
    std::array<ibv_wc, 16> completions{};
    for (;;) {
        std::array<pollfd, 3> ready{
            {{stop_fd, POLLIN, 0}, {parts.channel.fd(), POLLIN, 0}, {parts.cq.fd(), POLLIN, 0}}};
        poll(ready.data(), ready.size(), -1);
        if (ready[0].revents != 0) {
            return;
        }
        while (auto event = parts.channel.try_next()) {
            parts.handle(std::move(*event));
        }
        if (ready[2].revents != 0) {
            parts.cq.woken();
        }
        parts.cq.arm();
        for (auto done = parts.cq.poll(completions); !done.empty();
             done = parts.cq.poll(completions)) {
            std::ranges::for_each(done, [&](const ibv_wc& wc) { parts.completed(wc); });
        }
    }
}

}  // namespace rdma_read::test
