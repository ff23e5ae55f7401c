/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * usage: gloo_check DEVICE DIRECTORY RANK RANKS
 *
 * Runs collectives of gloo over its transport ibverbs, and compares every element with the expected
 * value.  The ranks exchange addresses through files in DIRECTORY, which must be empty.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allgather_ring.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

namespace
{

/* Number of runs of each algorithm, with other data each time. */
const int RUNS = 3;

using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Elements = std::vector<int64_t>;

int64_t element(int rank, int run, size_t i)
{
	return (int64_t)(rank + 1) * 1000003 + run * 257 + (int64_t)i * 7;
}

void fill(int64_t *elements, size_t count, int rank, int run)
{
	for (size_t i = 0; i < count; i++)
		elements[i] = element(rank, run, i);
}

void expect(bool equal, const Context &context, const char *what, size_t i)
{
	if (equal)
		return;
	fprintf(stderr, "rank %d: %s: element %zu is wrong\n", context->rank, what, i);
	_Exit(1);
}

/*
 * A barrier that also waits for the completions of all previous sends: gloo aborts if a buffer with
 * an incomplete send is destroyed, and its own algorithms do not wait for each of their sends.
 */
class Barrier
{
	using Buffer = std::unique_ptr<gloo::transport::Buffer>;

	std::vector<int> out_, in_;
	std::vector<Buffer> sends_, receives_;

      public:
	explicit Barrier(const Context &context) : out_(context->size), in_(context->size)
	{
		int slot = context->nextSlot();

		for (int i = 0; i < context->size; i++) {
			if (i == context->rank)
				continue;
			auto &pair = context->getPair(i);
			sends_.push_back(pair->createSendBuffer(slot, &out_[i], sizeof(int)));
			receives_.push_back(pair->createRecvBuffer(slot, &in_[i], sizeof(int)));
		}
	}

	void wait()
	{
		for (auto &buffer : sends_)
			buffer->send();
		for (auto &buffer : receives_)
			buffer->waitRecv();
		for (auto &buffer : sends_)
			buffer->waitSend();
	}
};

/* No rank writes to the memory of another one that still compares or fills its elements. */
void repeat(const Context &context, const std::function<void(int)> &before,
	    gloo::Algorithm &algorithm, const std::function<void(int)> &after)
{
	Barrier barrier(context);

	for (int run = 0; run < RUNS; run++) {
		before(run);
		barrier.wait();
		algorithm.run();
		after(run);
	}
	barrier.wait();
}

template <template <typename> class Allreduce>
void all_reduce(const Context &context, const char *what, int count)
{
	Elements elements(count);
	Allreduce<int64_t> algorithm(context, std::vector<int64_t *>{ elements.data() }, count);
	int ranks = context->size;

	repeat(
		context, [&](int run) { fill(elements.data(), count, context->rank, run); },
		algorithm,
		[&](int run) {
			for (int i = 0; i < count; i++) {
				int64_t sum = 0;

				for (int rank = 0; rank < ranks; rank++)
					sum += element(rank, run, i);
				expect(elements[i] == sum, context, what, i);
			}
		});
}

void all_gather(const Context &context, int count)
{
	Elements in(count), out((size_t)count * context->size);
	gloo::AllgatherRing<int64_t> algorithm(context, std::vector<const int64_t *>{ in.data() },
					       out.data(), count);

	repeat(
		context, [&](int run) { fill(in.data(), count, context->rank, run); }, algorithm,
		[&](int run) {
			for (size_t i = 0; i < out.size(); i++)
				expect(out[i] == element(i / count, run, i % count), context,
				       "allgather", i);
		});
}

void broadcast(const Context &context, int root, int count)
{
	Elements elements(count);
	gloo::BroadcastOneToAll<int64_t> algorithm(
		context, std::vector<int64_t *>{ elements.data() }, count, root);

	repeat(
		context, [&](int run) { fill(elements.data(), count, context->rank, run); },
		algorithm,
		[&](int run) {
			for (int i = 0; i < count; i++)
				expect(elements[i] == element(root, run, i), context, "broadcast",
				       i);
		});
}

/* No rank ends before all have the acknowledgements of what they sent. */
void leave(gloo::rendezvous::FileStore &store, int rank, int ranks)
{
	std::vector<std::string> keys;

	for (int i = 0; i < ranks; i++)
		keys.push_back("done " + std::to_string(i));
	store.set(keys[rank], { 1 });
	store.wait(keys);
}

void run(const char *device, const char *directory, int rank, int ranks)
{
	gloo::transport::ibverbs::attr attr;
	gloo::rendezvous::FileStore store(directory);
	/* Never destroyed: gloo frees a pair even if its thread still handles an event of it. */
	const Context &context =
		*new Context(std::make_shared<gloo::rendezvous::Context>(rank, ranks));

	attr.name = device;
	attr.port = 1;
	attr.index = 0;
	auto opened = gloo::transport::ibverbs::CreateDevice(attr);

	printf("%s\n", opened->str().c_str());
	context->connectFullMesh(store, opened);
	for (int count : { 1, 1000, 1 << 17 }) {
		all_reduce<gloo::AllreduceRing>(context, "ring allreduce", count);
		all_reduce<gloo::AllreduceHalvingDoubling>(context, "halving-doubling allreduce",
							   count);
		all_gather(context, count);
		for (int root = 0; root < ranks; root++)
			broadcast(context, root, count);
	}
	leave(store, rank, ranks);
	puts("all data is right");
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: gloo_check DEVICE DIRECTORY RANK RANKS\n");
		return 2;
	}
	try {
		run(argv[1], argv[2], atoi(argv[3]), atoi(argv[4]));
	} catch (const std::exception &error) {
		fprintf(stderr, "rank %s: %s\n", argv[3], error.what());
		_Exit(1);
	}
	return 0;
}
