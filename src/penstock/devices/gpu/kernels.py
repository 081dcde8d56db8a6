"""The kernels in CUDA C++: a hash table of keys, and reductions by group.

Row numbers and group numbers have 64 bits. The table holds row numbers alone: keys are compared
where they are, and nobody writes them, so that taking a slot is one exchange.
"""

from __future__ import annotations

SOURCE = r"""
typedef long long whole;
typedef unsigned long long bits;

#define FREE (-1LL)
#define FOR_EACH(row, count)                                              \
    for (whole row = (whole)blockIdx.x * blockDim.x + threadIdx.x;        \
         row < (count); row += (whole)gridDim.x * blockDim.x)

__device__ bits scattered(bits number)
{
    number ^= number >> 31;
    number *= 0x9e3779b97f4a7c15ULL;
    number ^= number >> 29;
    number *= 0xd1342543de82ef95ULL;
    return number ^ (number >> 32);
}

// Gives every row the slot of its key, and every slot the first of its rows.
extern "C" __global__ void claim_slots(
    const whole* words, const int width, const whole count,
    whole* slots, const bits mask, whole* slot_of, whole* firsts)
{
    FOR_EACH(row, count) {
        bits hash = (bits)width;
        for (int line = 0; line < width; line++)
            hash = scattered(hash ^ (bits)words[(whole)line * count + row]);
        bits slot = hash & mask;
        for (;;) {
            whole holder = slots[slot];
            if (holder == FREE)
                holder = (whole)atomicCAS((bits*)&slots[slot], (bits)FREE, (bits)row);
            if (holder == FREE)
                break;
            int line = 0;
            while (line < width
                   && words[(whole)line * count + row] == words[(whole)line * count + holder])
                line++;
            if (line == width)
                break;
            slot = (slot + 1) & mask;
        }
        slot_of[row] = (whole)slot;
        // A value read late is too large at worst, and only costs an exchange.
        if (firsts[slot] > row)
            atomicMin(&firsts[slot], row);
    }
}

extern "C" __global__ void whole_sums(
    const whole* values, const whole* ids, const whole count, whole* sums)
{
    FOR_EACH(row, count) {
        if (values[row] != 0)
            atomicAdd((bits*)&sums[ids[row]], (bits)values[row]);
    }
}

extern "C" __global__ void largest(
    const whole* values, const whole* ids, const whole count, whole* best)
{
    FOR_EACH(row, count) {
        if (best[ids[row]] < values[row])
            atomicMax(&best[ids[row]], values[row]);
    }
}

extern "C" __global__ void smallest(
    const whole* values, const whole* ids, const whole count, whole* best)
{
    FOR_EACH(row, count) {
        if (best[ids[row]] > values[row])
            atomicMin(&best[ids[row]], values[row]);
    }
}

// One block for each group, whose rows stand at order[starts[group]] and behind it. Which thread
// adds what depends on the number of rows alone.
extern "C" __global__ void ordered_sums(
    const double* values, const whole* order, const whole* starts, const whole* sizes,
    double* sums)
{
    extern __shared__ double parts[];
    const whole group = blockIdx.x;
    double sum = 0.0;
    for (whole place = threadIdx.x; place < sizes[group]; place += blockDim.x)
        sum += values[order[starts[group] + place]];
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[group] = parts[0];
}
"""
