/* SHA-256: the portable compression, the one by x86's SHA instructions, and the padding around both. */
#include "proto/model/sha256.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#define BLOCK 64u

static const uint32_t k[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t ror(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void compress_portable(uint32_t state[8], const uint8_t *p, size_t n_blocks)
{
    for (; n_blocks > 0; n_blocks--, p += BLOCK) {
        uint32_t w[64], s[8];
        for (unsigned i = 0; i < 16; i++)
            w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 |
                   p[4 * i + 3];
        for (unsigned i = 16; i < 64; i++) {
            uint32_t x = w[i - 15], y = w[i - 2];
            w[i] = w[i - 16] + (ror(x, 7) ^ ror(x, 18) ^ x >> 3) + w[i - 7] +
                   (ror(y, 17) ^ ror(y, 19) ^ y >> 10);
        }
        memcpy(s, state, sizeof s);
#pragma GCC unroll 64
        for (unsigned i = 0; i < 64; i++) { /* instead of moving the words, their names turn: AT(0) is a */
#define AT(x) s[((x)-i) & 7]
            uint32_t e = AT(4), a = AT(0);
            uint32_t t =
                AT(7) + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & AT(5)) ^ (~e & AT(6))) + k[i] + w[i];
            AT(3) += t;
            AT(7) = t + (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & AT(1)) ^ (a & AT(2)) ^ (AT(1) & AT(2)));
#undef AT
        }
        for (unsigned i = 0; i < 8; i++)
            state[i] += s[i];
    }
}

#if defined(__x86_64__)

static bool has_sha(void)
{
    unsigned a, b, c, d;
    if (!__builtin_cpu_supports("sse4.1") || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0)
        return false;
    return (b & bit_SHA) != 0;
}

/* The instructions keep the state as (a, b, e, f) and (c, d, g, h), highest word first, and do two rounds. */
__attribute__((target("sha,sse4.1,ssse3"))) static void compress_sha(uint32_t state[8], const uint8_t *p,
                                                                     size_t n_blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);       /* c d a b */
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b); /* e f g h */
    __m128i abef = _mm_alignr_epi8(dcba, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, dcba, 0xf0);
    for (; n_blocks > 0; n_blocks--, p += BLOCK) {
        __m128i w[4], abef_before = abef, cdgh_before = cdgh;
        for (unsigned i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
#pragma GCC unroll 16
        for (unsigned i = 0; i < 16; i++) { /* four rounds each */
            __m128i wk = _mm_add_epi32(w[i % 4], _mm_load_si128((const __m128i *)(k + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
            if (i < 12) { /* the words of four groups later */
                __m128i next = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
                next = _mm_add_epi32(next, _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4));
                w[i % 4] = _mm_sha256msg2_epu32(next, w[(i + 3) % 4]);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#endif

static void compress(struct brig_sha256 *s, const uint8_t *p, size_t n_blocks)
{
#if defined(__x86_64__)
    if (s->fast) {
        compress_sha(s->state, p, n_blocks);
        return;
    }
#endif
    compress_portable(s->state, p, n_blocks);
}

void brig_sha256_init_portable(struct brig_sha256 *s)
{
    *s = (struct brig_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                        0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void brig_sha256_init(struct brig_sha256 *s)
{
    brig_sha256_init_portable(s);
#if defined(__x86_64__)
    s->fast = has_sha();
#endif
}

void brig_sha256_add(struct brig_sha256 *s, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t held = s->n_bytes % BLOCK;
    s->n_bytes += n;
    if (held > 0) {
        size_t part = BLOCK - held < n ? BLOCK - held : n;
        memcpy(s->block + held, p, part);
        p += part;
        n -= part;
        if (held + part < BLOCK)
            return;
        compress(s, s->block, 1);
    }
    compress(s, p, n / BLOCK);
    if (n % BLOCK > 0)
        memcpy(s->block, p + n / BLOCK * BLOCK, n % BLOCK);
}

static void put_be(uint8_t *out, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        out[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

void brig_sha256_finish(struct brig_sha256 *s, uint8_t out[BRIG_SHA256_BYTES])
{
    uint8_t tail[2 * BLOCK] = {0};
    size_t held = s->n_bytes % BLOCK, n = held + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    memcpy(tail, s->block, held);
    tail[held] = 0x80;
    put_be(tail + n - 8, s->n_bytes * 8, 8);
    compress(s, tail, n / BLOCK);
    for (unsigned i = 0; i < 8; i++)
        put_be(out + 4 * i, s->state[i], 4);
}
