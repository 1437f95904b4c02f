/* bcryptprimitives.dll for Wine 8, which has none (Wine 9 and newer do).
 *
 * Rust's standard library takes its random numbers from ProcessPrng, so uv.exe would not start without this DLL.
 * SystemFunction036 is RtlGenRandom, which Wine's advapi32 exports.
 */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length)
{
    return SystemFunction036(buffer, (ULONG)length);
}
