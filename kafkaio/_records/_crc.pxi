# CRC-32C, the checksum of batches.
#
# The polynomial is Castagnoli's, with the bits reversed. x86-64 and ARM have an
# instruction for it, which is looked for when the module is loaded. It takes several
# cycles until its result is there, and can be begun in each cycle: so long data is
# divided into three blocks, whose checksums are computed side by side. A checksum is
# continued over n bytes of zero by a linear map of its bits, and the checksum of a||b
# is that of a, continued over len(b) bytes of zero, exclusive or that of b. The map is
# kept as four tables, one for each byte of the checksum.
#
# For any other n the map is a product of polynomials modulo that of the checksum: by
# x^(8n), which is made of squares of x.
#
# Elsewhere tables are used, eight bytes at a time.

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #define KAFKAIO_CRC_POLYNOMIAL 0x82F63B78u
    /* Lengths of the three blocks, for long and for short data. */
    #define KAFKAIO_CRC_LONG 4096
    #define KAFKAIO_CRC_SHORT 256

    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
      #include <nmmintrin.h>
      #define KAFKAIO_CRC_INSTRUCTION 1
      #define KAFKAIO_CRC_TARGET __attribute__((target("sse4.2")))
      #define KAFKAIO_CRC_8(crc, number) _mm_crc32_u64((crc), (number))
      #define KAFKAIO_CRC_1(crc, number) _mm_crc32_u8((uint32_t)(crc), (number))
      static int kafkaio_crc_has_instruction(void) {
          __builtin_cpu_init();
          return __builtin_cpu_supports("sse4.2") != 0;
      }
    #elif defined(_M_X64) && !defined(_M_ARM64EC) && defined(_MSC_VER)
      #include <intrin.h>
      #include <nmmintrin.h>
      #define KAFKAIO_CRC_INSTRUCTION 1
      #define KAFKAIO_CRC_TARGET
      #define KAFKAIO_CRC_8(crc, number) _mm_crc32_u64((crc), (number))
      #define KAFKAIO_CRC_1(crc, number) _mm_crc32_u8((uint32_t)(crc), (number))
      static int kafkaio_crc_has_instruction(void) {
          int found[4];
          __cpuid(found, 1);
          return (found[2] >> 20) & 1;
      }
    #elif defined(__aarch64__) && !defined(__AARCH64EB__) \\
          && defined(__ARM_FEATURE_CRC32)
      /* The compiler may use it anywhere, as on macOS. */
      #include <arm_acle.h>
      #define KAFKAIO_CRC_INSTRUCTION 1
      #define KAFKAIO_CRC_TARGET
      #define KAFKAIO_CRC_8(crc, number) __crc32cd((uint32_t)(crc), (number))
      #define KAFKAIO_CRC_1(crc, number) __crc32cb((uint32_t)(crc), (number))
      static int kafkaio_crc_has_instruction(void) { return 1; }
    #elif defined(__aarch64__) && !defined(__AARCH64EB__) && defined(__linux__) \\
          && (defined(__GNUC__) || defined(__clang__))
      /* By assembler: whether headers have it depends on the compiler's version. */
      #include <sys/auxv.h>
      #define KAFKAIO_CRC_INSTRUCTION 1
      #define KAFKAIO_CRC_TARGET
      static inline uint32_t kafkaio_crc_arm_8(uint32_t crc, uint64_t number) {
          __asm__(".arch_extension crc\\n\\tcrc32cx %w0, %w0, %x1"
                  : "+r"(crc) : "r"(number));
          return crc;
      }
      static inline uint32_t kafkaio_crc_arm_1(uint32_t crc, uint8_t number) {
          __asm__(".arch_extension crc\\n\\tcrc32cb %w0, %w0, %w1"
                  : "+r"(crc) : "r"((uint32_t)number));
          return crc;
      }
      #define KAFKAIO_CRC_8(crc, number) kafkaio_crc_arm_8((uint32_t)(crc), (number))
      #define KAFKAIO_CRC_1(crc, number) kafkaio_crc_arm_1((uint32_t)(crc), (number))
      static int kafkaio_crc_has_instruction(void) {
          return (getauxval(16 /* AT_HWCAP */) >> 7) & 1;  /* HWCAP_CRC32 */
      }
    #else
      static int kafkaio_crc_has_instruction(void) { return 0; }
    #endif

    static uint32_t kafkaio_crc_tables[8][256];
    static uint32_t kafkaio_crc_over_long[4][256];
    static uint32_t kafkaio_crc_over_short[4][256];
    static uint32_t kafkaio_crc_squares[32];  /* x^8, x^16, x^32, and so on */
    static int kafkaio_crc_by_instruction_is_on = 0;

    static uint32_t kafkaio_crc_by_table(
        uint32_t crc, const uint8_t *at, size_t size
    ) {
        uint32_t (*tables)[256] = kafkaio_crc_tables;
        while (size >= 8) {
            uint32_t low = crc ^ (
                (uint32_t)at[0] | (uint32_t)at[1] << 8
                | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24
            );
            crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255]
                ^ tables[5][low >> 16 & 255] ^ tables[4][low >> 24]
                ^ tables[3][at[4]] ^ tables[2][at[5]]
                ^ tables[1][at[6]] ^ tables[0][at[7]];
            at += 8;
            size -= 8;
        }
        for (; size > 0; size--) {
            crc = tables[0][(crc ^ *at++) & 255] ^ crc >> 8;
        }
        return crc;
    }

    #ifdef KAFKAIO_CRC_INSTRUCTION
    static inline uint64_t kafkaio_crc_number(const uint8_t *at) {
        uint64_t number;  /* these machines are little-endian */
        memcpy(&number, at, sizeof(number));
        return number;
    }

    static inline uint32_t kafkaio_crc_over(uint32_t (*tables)[256], uint32_t crc) {
        return tables[0][crc & 255] ^ tables[1][crc >> 8 & 255]
            ^ tables[2][crc >> 16 & 255] ^ tables[3][crc >> 24];
    }

    /* The checksum over `count` times three blocks of so many bytes. */
    KAFKAIO_CRC_TARGET
    static inline uint32_t kafkaio_crc_blocks(
        uint32_t crc, const uint8_t *at, size_t block, size_t count,
        uint32_t (*over)[256]
    ) {
        for (; count > 0; count--) {
            uint64_t first = crc, second = 0, third = 0;
            const uint8_t *end = at + block;
            for (; at < end; at += 8) {
                first = KAFKAIO_CRC_8(first, kafkaio_crc_number(at));
                second = KAFKAIO_CRC_8(second, kafkaio_crc_number(at + block));
                third = KAFKAIO_CRC_8(third, kafkaio_crc_number(at + 2 * block));
            }
            crc = kafkaio_crc_over(over, (uint32_t)first) ^ (uint32_t)second;
            crc = kafkaio_crc_over(over, crc) ^ (uint32_t)third;
            at += 2 * block;
        }
        return crc;
    }

    KAFKAIO_CRC_TARGET
    static uint32_t kafkaio_crc_by_instruction(
        uint32_t crc, const uint8_t *at, size_t size
    ) {
        uint64_t wide;
        size_t count = size / (3 * KAFKAIO_CRC_LONG);
        if (count > 0) {
            crc = kafkaio_crc_blocks(
                crc, at, KAFKAIO_CRC_LONG, count, kafkaio_crc_over_long);
            at += count * 3 * KAFKAIO_CRC_LONG;
            size -= count * 3 * KAFKAIO_CRC_LONG;
        }
        count = size / (3 * KAFKAIO_CRC_SHORT);
        if (count > 0) {
            crc = kafkaio_crc_blocks(
                crc, at, KAFKAIO_CRC_SHORT, count, kafkaio_crc_over_short);
            at += count * 3 * KAFKAIO_CRC_SHORT;
            size -= count * 3 * KAFKAIO_CRC_SHORT;
        }
        wide = crc;
        for (; size >= 8; size -= 8, at += 8) {
            wide = KAFKAIO_CRC_8(wide, kafkaio_crc_number(at));
        }
        crc = (uint32_t)wide;
        for (; size > 0; size--) {
            crc = KAFKAIO_CRC_1(crc, *at++);
        }
        return crc;
    }
    #endif

    /* Continue a checksum over so many bytes of zero, by the definition. */
    static uint32_t kafkaio_crc_over_zeros(uint32_t crc, size_t size) {
        for (; size > 0; size--) {
            crc = kafkaio_crc_tables[0][crc & 255] ^ crc >> 8;
        }
        return crc;
    }

    /* The product of two polynomials; x^0 is the highest bit. */
    static uint32_t kafkaio_crc_times(uint32_t one, uint32_t other) {
        uint32_t product = 0;
        for (; one != 0; one <<= 1) {
            if (one >> 31) {
                product ^= other;
            }
            other = other & 1 ? other >> 1 ^ KAFKAIO_CRC_POLYNOMIAL : other >> 1;
        }
        return product;
    }

    static uint32_t kafkaio_crc_over_any(uint32_t crc, uint32_t size) {
        int bit;
        for (bit = 0; size > 0; size >>= 1, bit++) {
            if (size & 1) {
                crc = kafkaio_crc_times(kafkaio_crc_squares[bit], crc);
            }
        }
        return crc;
    }

    static void kafkaio_crc_prepare_over(uint32_t (*tables)[256], size_t size) {
        int place, number, bit;
        uint32_t bits[32];
        for (bit = 0; bit < 32; bit++) {
            bits[bit] = kafkaio_crc_over_zeros((uint32_t)1 << bit, size);
        }
        for (place = 0; place < 4; place++) {
            for (number = 0; number < 256; number++) {
                uint32_t crc = 0;
                for (bit = 0; bit < 8; bit++) {
                    if (number >> bit & 1) {
                        crc ^= bits[8 * place + bit];
                    }
                }
                tables[place][number] = crc;
            }
        }
    }

    static void kafkaio_crc_prepare(void) {
        int table, number, bit;
        for (number = 0; number < 256; number++) {
            uint32_t crc = (uint32_t)number;
            for (bit = 0; bit < 8; bit++) {
                crc = crc & 1 ? crc >> 1 ^ KAFKAIO_CRC_POLYNOMIAL : crc >> 1;
            }
            kafkaio_crc_tables[0][number] = crc;
        }
        for (table = 1; table < 8; table++) {
            for (number = 0; number < 256; number++) {
                uint32_t crc = kafkaio_crc_tables[table - 1][number];
                kafkaio_crc_tables[table][number] =
                    kafkaio_crc_tables[0][crc & 255] ^ crc >> 8;
            }
        }
        kafkaio_crc_squares[0] = (uint32_t)1 << 23;
        for (bit = 1; bit < 32; bit++) {
            uint32_t root = kafkaio_crc_squares[bit - 1];
            kafkaio_crc_squares[bit] = kafkaio_crc_times(root, root);
        }
        if (kafkaio_crc_has_instruction()) {
            kafkaio_crc_prepare_over(kafkaio_crc_over_long, KAFKAIO_CRC_LONG);
            kafkaio_crc_prepare_over(kafkaio_crc_over_short, KAFKAIO_CRC_SHORT);
            kafkaio_crc_by_instruction_is_on = 1;
        }
    }

    static uint32_t kafkaio_crc(
        uint32_t crc, const uint8_t *at, size_t size, int may_use_instruction
    ) {
    #ifdef KAFKAIO_CRC_INSTRUCTION
        if (kafkaio_crc_by_instruction_is_on && may_use_instruction) {
            return ~kafkaio_crc_by_instruction(~crc, at, size);
        }
    #endif
        return ~kafkaio_crc_by_table(~crc, at, size);
    }
    """
    void kafkaio_crc_prepare()
    uint32_t kafkaio_crc(
        uint32_t crc, const uint8_t *at, size_t size, int may_use_instruction
    ) noexcept nogil
    uint32_t kafkaio_crc_over_any(uint32_t crc, uint32_t size) noexcept nogil


kafkaio_crc_prepare()


def crc32c(data not None, uint32_t value=0, *, bint by_table=False):
    """Return the CRC-32C of data, continued from a previous value.

    See `kafkaio._records._crc.crc32c`. ``by_table`` computes it as on a machine without
    an instruction for it.
    """
    cdef Py_buffer view
    cdef uint32_t found
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    found = kafkaio_crc(value, <const uint8_t *>view.buf, <size_t>view.len, not by_table)
    PyBuffer_Release(&view)
    return found


def crc32c_over(uint32_t difference, uint32_t size):
    """Return what a difference becomes behind more data.

    See `kafkaio._records._crc.crc32c_over`.
    """
    return kafkaio_crc_over_any(difference, size)
